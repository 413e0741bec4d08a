"""Released models as estimators of scikit-learn: nothing of a simulation is needed to use one."""

import warnings
from collections.abc import Collection
from numbers import Real
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if

from aggregator.learners.inputs.validation import doubles, require_integer
from aggregator.releases.model_files import ReleasedFile
from federation.contract.errors import InputError
from federation.features.feature_map import text_code
from federation.numerics.rows import Floats
from scenarios.data.frames import is_frame, sheet
from scenarios.data.row_storage import features_of
from scenarios.data.sheets import is_missing
from scenarios.data.tables import listed
from scenarios.scores.prediction import (
    LEVEL,
    Chosen,
    applied,
    choose,
    find_model,
    finite,
    unknown_texts,
    unused_columns,
)
from scenarios.settings.protocol_options import DEFAULT

_SHOWN = 3  # columns in a message
_NO_VALUE = ("<NA>", "NaT")  # as pandas has it in arrays of objects


class ReleasedEstimator(BaseEstimator):  # type: ignore[misc, unused-ignore]
    """One released model, of one epsilon and noise draw. What it says of rows costs no privacy beyond the release's.

    Rows are a data frame of any library, whose columns are found by name (their order and further columns make no
    difference, and those that the model leaves out may be missing), or an array (n, d) with the columns in the order of
    `feature_names_in_`. Texts stand in an array of objects, where None and NaN are missing. A warning names text
    columns of which the model knows no text. `fit` changes nothing, as that of `sklearn.frozen.FrozenEstimator`: what
    was released cannot learn.

    Attributes:
        feature_names_in_: (d,), the columns that the model was learned from.
        n_features_in_: d.
        guarantee_: the privacy guarantee of the release, as plain values, or why it has none.
        epsilon_: that the release aimed at; infinite without one.
        variant_: the name of the protocol with its options.
        source_: the model's file.
    """

    def __init__(self, release: Chosen) -> None:
        self.release = release
        models = release.models
        self.feature_names_in_ = np.array(models.columns, dtype=object)
        self.n_features_in_ = len(models.columns)
        self.guarantee_, self.epsilon_ = release.used.guarantee, release.used.epsilon
        self.variant_, self.source_ = models.variant, release.used.source

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return repr(self.release).replace("Chosen", type(self).__name__, 1)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_clone__(self) -> Self:
        return self

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """The same model: it has learned all that it will."""
        return self

    def _said(self, what: Any, X: Any) -> Any:
        """What a method of the file of models says of rows."""
        rows = self._rows(X)
        with applied(self.release, "X"):
            found = what(self.release.release, self.release.draw, rows)
            return finite(found) if found.dtype.kind == "f" else found

    def _has(self, what: Any) -> bool:
        """Whether a method of the file of models says anything of rows."""
        with applied(self.release, "X"):
            return what(self.release.release, self.release.draw, np.empty((0, self.n_features_in_))) is not None

    def _rows(self, X: Any) -> Floats:
        models, release = self.release.models, self.release.release
        missing = models.feature_maps[release].imputes
        unused = unused_columns(self.release)
        if is_frame(X):
            needed = [name for i, name in enumerate(models.columns) if i not in unused]
            rows = features_of(sheet(X, needed), models.columns, models.text_columns, missing, unused)
        else:
            rows = _from_array(X, models, missing, unused)
        if (remark := unknown_texts(self.release, rows)) is not None:
            warnings.warn(remark, UserWarning, stacklevel=4)
        return rows


def _decides(model: "ReleasedClassifier") -> bool:
    if model._has(model.release.models.decided):
        return True
    raise AttributeError(f"models of the variant '{model.variant_}' name classes, without numbers that decide")


def _tells_probabilities(model: "ReleasedClassifier") -> bool:
    if model._has(model.release.models.probabilities):
        return True
    raise AttributeError(
        f"the model of the variant '{model.variant_}' has scores and no probabilities; with labelled rows of your own "
        "sklearn.calibration.CalibratedClassifierCV(sklearn.frozen.FrozenEstimator(model)) makes some"
    )


class ReleasedClassifier(ClassifierMixin, ReleasedEstimator):  # type: ignore[misc, unused-ignore]
    """A released model that says of which class each row is.

    Attributes, besides those of `ReleasedEstimator`:
        classes_: (C,), names of the classes, texts, by alphabet as scikit-learn has them.
    """

    def __init__(self, release: Chosen) -> None:
        super().__init__(release)
        self._names = np.array(release.models.classes)
        self._order = np.argsort(self._names)
        self.classes_ = self._names[self._order]

    def predict(self, X: Any) -> NDArray[Any]:
        """The class (n,) of each row of X (n, d). Raises `InputError` for rows of another kind."""
        return np.asarray(self._names[self._said(self.release.models.predicted, X)])

    @available_if(_decides)  # type: ignore[untyped-decorator, unused-ignore]
    def decision_function(self, X: Any) -> Floats:
        """What decides: of two classes how much speaks for the second (n,), or else the scores (n, C)."""
        found = np.asarray(self._said(self.release.models.decided, X))
        if found.ndim > 1:
            return found[:, self._order]
        return found if self._order[0] == 0 else -found

    @available_if(_tells_probabilities)  # type: ignore[untyped-decorator, unused-ignore]
    def predict_proba(self, X: Any) -> Floats:
        """Probabilities (n, C) of the classes, of models that were learned to tell them; others lack this method.

        Networks of `error_marginals` are trained by cross-entropy, and this is the logistic function of their output.
        Models of `mean_operator` minimise a loss whose scores stand for probabilities, unless another is chosen; the
        louder the noise is, the nearer these are to 1/2. Both are as far off as the noise of the release makes them,
        for nothing has calibrated them. The scores of all other protocols have no such meaning.
        """
        return np.asarray(self._said(self.release.models.probabilities, X))[:, self._order]


class ReleasedRegressor(RegressorMixin, ReleasedEstimator):  # type: ignore[misc, unused-ignore]
    """A released model that says a number of each row, in the public range of the labels if one was declared."""

    def predict(self, X: Any) -> Floats:
        """The number (n,) of each row of X (n, d). Raises `InputError` for rows of another kind."""
        return np.asarray(self._said(self.release.models.predicted, X))


class ReleasedRatioEstimator(ReleasedEstimator):
    """A released model that says which share of a set of rows each class has.

    Attributes, besides those of `ReleasedEstimator`:
        classes_: (C,), names of the classes, texts.
    """

    def __init__(self, release: Chosen) -> None:
        super().__init__(release)
        self.classes_ = np.array(release.models.classes)

    def predict(self, X: Any) -> Floats:
        """The share (C,) of each class among the rows of X (n, d) together. Raises `InputError` as the others."""
        return np.asarray(self._said(self.release.models.predicted, X))

    def predict_interval(self, X: Any, level: float = LEVEL) -> Floats | None:
        """Lower and upper ends (C, 2) that hold each share with about `level`; None where too little is known."""
        rows, chosen = self._rows(X), self.release
        with applied(chosen, "X"):
            return chosen.models.intervals(chosen.release, chosen.draw, rows, level)


_ESTIMATORS: dict[str, type[ReleasedClassifier | ReleasedRegressor | ReleasedRatioEstimator]] = {
    "classes": ReleasedClassifier,
    "numbers": ReleasedRegressor,
    "ratios": ReleasedRatioEstimator,
}


def load(
    source: str | Path, variant: str = DEFAULT, *, epsilon: float | None = None, split: int = 0, draw: int = 0
) -> ReleasedClassifier | ReleasedRegressor | ReleasedRatioEstimator:
    """A released model as a fitted estimator of scikit-learn: a run's directory, or the file of one variant's models.

    `variant`: whose model of a directory, NAME/SETTING for one setting of a sweep, or the default one. `epsilon`: which
    release; the largest that there is when omitted. `split`, `draw`: counted from 0. A file holds one variant and
    split. Raises `InputError` naming what there is when something asked for is not there, and for files that are no
    models.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> from scenarios import run
        >>> from sklearn.datasets import load_digits
        >>> few = ["parties.count=50", "trials.splits=1", "trials.noise=1"]
        >>> with TemporaryDirectory() as folder:
        ...     _ = run("quickstart", out=folder, overrides=few)
        ...     model = load(folder, epsilon=100)
        >>> model, model.epsilon_, model.guarantee_["unit"]
        (ReleasedClassifier('soft_vote', epsilon=100, draw=0), 100.0, 'party')
        >>> pixels, digits = load_digits(return_X_y=True)
        >>> model.score(pixels, digits.astype(str)) > 0.7
        True
    """
    if epsilon is not None and not isinstance(epsilon, Real):
        raise InputError(f"epsilon must be a number, or omitted for the largest, got {epsilon!r}")
    for name, number in (("split", split), ("draw", draw)):
        require_integer(name, number, 0, 0)
    path = Path(source)
    if path.is_dir() or path.suffix != ".npz":
        path = find_model(path, str(variant), split)
    elif (variant, split) != (DEFAULT, 0):
        raise InputError(f"{path} is the file of one variant and split; omit variant and split, or name its directory")
    chosen = choose(path, epsilon, draw)
    return _ESTIMATORS[chosen.models.predicts](chosen)


def _from_array(X: Any, models: ReleasedFile[Any], missing: bool, unused: Collection[int]) -> Floats:
    """An array of numbers, or of objects where some columns are texts, as raw rows (n, d); 0 in `unused` columns."""
    texts = [models.columns[i] for i in models.text_columns]
    cells = X if hasattr(X, "toarray") else np.asarray(X)
    if cells.ndim == 0:
        lazy = "collect it first" if hasattr(X, "collect") else "make one of it"
        raise InputError(f"X must be a data frame, or an array of two axes, got {type(X).__name__}; {lazy}")
    if cells.ndim != 2 or cells.shape[1] != len(models.columns):
        raise InputError(
            f"X must have two axes, rows and the {len(models.columns)} columns {listed(models.columns, _SHOWN)}, got "
            f"shape {cells.shape}"
        )
    if unused:
        cells = cells.copy()
        cells[:, sorted(unused)] = 0
    if texts:
        if cells.dtype.kind not in "OUST":
            raise InputError(
                f"X has numbers where texts belong, in {listed(texts, _SHOWN)}; give a data frame or objects"
            )
        cells = cells.astype(object)
        for i in models.text_columns:
            written = [str(cell).strip() for cell in cells[:, i]]
            cells[:, i] = [text_code("" if is_missing(text) or text in _NO_VALUE else text) for text in written]
    rows = doubles(cells, "X")
    wrong = np.isinf(rows) | (np.isnan(rows) if not missing else False)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        problem = "is missing" if np.isnan(rows[row, column]) else "is not finite"
        raise InputError(
            f"X, row {row} (counted from 0): column '{models.columns[column]}' {problem}; correct it or remove the row"
        )
    return rows
