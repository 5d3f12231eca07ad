import pytest

from app.ingest.parsers.formulas import formula


@pytest.mark.parametrize(
    ("tex", "text"),
    [
        ("F = k x", "F = k x"),
        (r"\frac{1}{16}", "1/16"),
        (r"\dfrac{a+b}{c+d}", "(a+b)/(c+d)"),
        (r"{a+1 \over b}", "(a+1)/b"),
        (r"\tbinom n k", "(n choose k)"),
        ("10^{-9}", "10^-9"),
        ("x^{n+1}", "x^(n+1)"),
        (r"e^{i\pi}+1=0", "e^(iπ)+1=0"),
        (r"x^\frac{1}{2}", "x^(1/2)"),
        ("x_{ij}^{2}", "x_ij^2"),
        (r"90^{\circ}", "90°"),
        (r"\sqrt{2}", "√2"),
        (r"\sqrt[3]{x+1}", "√[3](x+1)"),
        (r"\sum_{i=0}^n i^2", "∑_(i=0)^n i^2"),
        (r"\mathbf{v}\cdot\mathbb{R}", "v·\u211d"),
        (r"{\displaystyle F=kx}", "F=kx"),
        (r"\left(\frac{a}{b}\right)", "(a/b)"),
        (r"\text{rate} = 5\,\mathrm{km/h}", "rate = 5 km/h"),
        (r"\ce{H2O}", "H2O"),
        (r"\mathrm{H_2O}", "H2O"),
        (r"\operatorname{rank}(A)", "rank(A)"),
        (r"\begin{cases} 1 & x>0\\ 0 & x<0\end{cases}", "1 x>0; 0 x<0"),
        (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", "[ 1 2; 3 4 ]"),
        (r"a \isin \reals, \infin", "a ∈ \u211d, ∞"),
        (r"\unheard{x}", "unheard x"),
        ("1{,}234", "1,234"),
        ("f''(x)", "f''(x)"),
    ],
)
def test_a_formula_keeps_its_value(tex: str, text: str) -> None:
    assert formula(tex) == text


@pytest.mark.parametrize(
    "tex", [r"\frac{", "{" * 3_000, "}{", r"\left(" * 2_000, r"\href", r"\href{x}"]
)
def test_what_cannot_be_read_stays_tex(tex: str) -> None:
    assert formula(tex) == tex
