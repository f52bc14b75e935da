import torchmetrics
from given import array, integers
from torchmetrics.functional import f1_score, mean_squared_error, pearson_corrcoef
from torchmetrics.functional.image import structural_similarity_index_measure


def functions():
    accuracy = torchmetrics.classification.MulticlassAccuracy(num_classes=4)
    error = torchmetrics.MeanSquaredError()

    def updated(scores, labels):
        accuracy.reset()
        accuracy.update(scores, labels)
        return accuracy.compute(), error(scores[:, 0], labels.float())

    def direct(scores, labels):
        return (
            f1_score(scores, labels, task="multiclass", num_classes=4, average="macro"),
            mean_squared_error(scores[:, 0], scores[:, 1]),
            pearson_corrcoef(scores[:, 0], scores[:, 1]),
        )

    def similarity(a, b):
        return structural_similarity_index_measure(a, b, data_range=1.0)

    scores, labels = array(16, 4), integers(16, high=4)
    return [
        ("metrics", updated, [scores, labels]),
        ("functional", direct, [scores, labels]),
        ("image", similarity, [array(1, 1, 16, 16), array(1, 1, 16, 16, seed=1)]),
    ]
