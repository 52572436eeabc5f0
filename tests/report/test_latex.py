"""Tables as LaTeX: nothing that a record says is read as a command."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from lra.report.model import Row, Table, Value
from lra.report.render import render
from lra.report.write.latex import latex, line

from .sample import LENGTHS, quality, store
from .test_awkward import _records
from .test_render import AWKWARD


def test_a_table_has_its_rules_caption_and_a_line_per_row() -> None:
    table = Table(
        id="quality-1",
        title="Accuracy",
        caption="Percent.",
        corner="mechanism",
        columns=("a_b", "text"),
        rows=(
            Row("one", (Value("62.6", "\N{PLUS-MINUS SIGN} 0.3", best=True), Value("OOM"))),
            Row("two", (Value("1.0"), Value("2.0")), origin="reference", group="Other: A & B"),
        ),
        notes=("50 %.",),
    )
    assert latex(table) == (
        "\\begin{table}\n\\centering\n\\caption{Accuracy. Percent.}\n\\label{tab:quality-1}\n"
        "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%\n"
        "\\begin{tabular}{lrr}\n\\toprule\nmechanism & a\\_b & text \\\\\n\\midrule\n"
        "one & \\textbf{62.6} {\\footnotesize($\\pm$ 0.3)} & OOM \\\\\n"
        "\\addlinespace\n\\multicolumn{3}{l}{\\emph{Other: A \\& B}} \\\\\n"
        "two (reference) & 1.0 & 2.0 \\\\\n\\bottomrule\n\\end{tabular}}\n"
        "\\par\\footnotesize 50 \\%.\n\\end{table}"
    )


@pytest.mark.parametrize("text", [AWKWARD, "\\input{x}", "a|b<c>&d%e$f#g_h^i~j{k}", 'say "x"'])
def test_what_latex_would_read_is_escaped(text: str) -> None:
    bare = re.sub(r"\\(text\w+\{\}|[{}&%$#_])", "", line(text))
    assert not re.search(r'[\\{}&%$#_~^<>|"\n]', bare), bare


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("--rerun --- a-b", "-{}-rerun -{}-{}- a-b"),
        ("''a'' it's", "'{}'a'{}' it's"),
        (",,a, b", ",{},a, b"),
        ("`a``", r"\textasciigrave{}a\textasciigrave{}\textasciigrave{}"),
        ("\u0126 \u0159", "{[}U+0126] \u0159"),
    ],
)
def test_nothing_becomes_another_glyph(text: str, told: str) -> None:
    assert line(text) == told


@pytest.mark.parametrize("which", ["sample", "awkward"])
def test_every_table_of_a_report_is_whole(which: str, tmp_path_factory: pytest.TempPathFactory):
    records, reference = store() if which == "sample" else (list(_records()), [])
    place = tmp_path_factory.mktemp(which)
    page = render(records, reference, place, title="t")
    text = page.page.with_name("report.tex").read_text(encoding="utf-8")
    markdown = page.page.with_name("report.md").read_text(encoding="utf-8")
    tables = text.split("\\begin{table}\n")[1:]
    assert len(tables) == len(re.findall(r"^\|:", markdown, re.MULTILINE))
    labels = re.findall(r"\\label\{(tab:[\w-]+)\}", text)
    assert len(set(labels)) == len(labels) == len(tables)
    for table in tables:
        (columns,) = re.findall(r"\\begin\{tabular\}\{(l[rl]*)\}", table)
        body = table.split("\\toprule\n")[1].split("\n\\bottomrule")[0]
        for row in body.splitlines():
            if row.endswith(" \\\\") and not row.startswith("\\multicolumn"):
                assert len(re.findall(r"(?<!\\)&", row)) == len(columns) - 1, row
            else:
                assert row.startswith(("\\midrule", "\\addlinespace", "\\multicolumn")), row
        # Every brace that opens a group closes one.
        depth = re.sub(r"\\[{}]", "", table)
        assert depth.count("{") == depth.count("}")


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no LaTeX")
@pytest.mark.parametrize("which", ["sample", "awkward"])
def test_latex_sets_every_report(which: str, tmp_path: Path) -> None:
    records, reference = store() if which == "sample" else (list(_records()), [])
    letters = [c for c in map(chr, range(0xA1, 0x180)) if c.isprintable()]
    names = ["[x] \N{SQUARE ROOT}\N{LESS-THAN OR EQUAL TO} -- '' ,, ` ?` !` <<"]
    names += ["".join(letters[n : n + 60]) for n in range(0, len(letters), 60)]
    odd = [quality(name, task, 0.5) for name in names for task in LENGTHS]
    render([*records, *odd], reference, tmp_path, title="t")
    packages = (
        "\\usepackage[T1]{fontenc}\\usepackage[utf8]{inputenc}\\usepackage{booktabs,graphicx}"
    )
    text = (
        f"\\documentclass{{article}}{packages}\\begin{{document}}\\input{{report}}\\end{{document}}"
    )
    (tmp_path / "main.tex").write_text(text)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "main.tex"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, [one for one in ran.stdout.splitlines() if one.startswith("!")]
    assert "Overfull \\hbox" not in ran.stdout
