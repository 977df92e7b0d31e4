"""First uses of the slow modules, paid for once by the zygote, before it has anyone's cells, and not by every run.

They fill caches, import what is imported late and let Python settle how it runs that code. They open no file, since a run
keeps none of the zygote's, and leave no figure.
"""


def _numpy():
    import numpy as np

    np.linalg.solve(np.eye(2), np.linspace(0, 1, 2)).mean()


def _sympy():
    import sympy as sp

    x, k = sp.Symbol("x"), sp.Symbol("k", positive=True)
    sp.integrate(3 * x**2 + k, (x, 0, 5))
    sp.solve(sp.diff(x**3 - 12 * x, x), x)
    str(sp.simplify((x**2 - 1) / (x - 1)).subs(x, 2.0))


def _pyplot():
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots()
    axes.plot([1, 2], label="a")
    axes.bar([1], [2])
    axes.set(title="a", xlabel="b", ylabel="c")
    axes.legend()
    axes.grid()
    plt.close(figure)


FIRST_USES = {"numpy": _numpy, "sympy": _sympy, "matplotlib.pyplot": _pyplot}
