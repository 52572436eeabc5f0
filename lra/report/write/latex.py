r"""The tables of a report as LaTeX, for `\input` or to copy one from.

They need `booktabs` and `graphicx`, which shrinks a table wider than the page. A table longer than
the page stays so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lra.core.escape import escape_lines
from lra.report.model import Report, Row, Table, Value

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}",
    "\N{MULTIPLICATION SIGN}": r"$\times$",
    "\N{PLUS-MINUS SIGN}": r"$\pm$",
    "\N{MICRO SIGN}": r"$\mu$",
    "\N{PARTIAL DIFFERENTIAL}": r"$\partial$",
    "\N{EN DASH}": "--",
    "\N{HORIZONTAL ELLIPSIS}": r"\ldots{}",
    "\N{SUPERSCRIPT TWO}": r"$^2$",
    "\N{LESS-THAN OR EQUAL TO}": r"$\leq$",
    "[": "{[}",
    "\n": " ",
}
"""Characters with a meaning in LaTeX. A bracket at the beginning of a row would be read as an
option of the line before."""
_UNSAFE = re.compile("|".join(map(re.escape, _SPECIAL)))
_PAIR = re.compile(r"([-',])(?=\1)")
"""Pairs of characters that become a dash or a quotation mark."""
_LAST = 0x17F
"""Last character up to which a T1 font has letters, with exceptions."""
_LACKING = frozenset("\u0126\u0127\u0138\u013f\u0140\u0149\u0166\u0167\u017f")


def report_latex(report: Report) -> str:
    """Return all tables of a report in order, each as a `table` with the label `tab:` and its
    id."""
    parts = [r"% Needs \usepackage{booktabs,graphicx} and \usepackage[T1]{fontenc}."]
    if report.headline.leaderboard:
        parts.append(latex(report.headline.leaderboard))
    for topic in report.topics:
        for section in topic.sections:
            if section.tables:
                # LaTeX holds back only a few tables at once.
                heading = f"% {line(f'{topic.title}: {section.setting}')}"
                parts += [heading, *map(latex, section.tables), "\\clearpage"]
    return "\n\n".join(parts) + "\n"


def latex(table: Table) -> str:
    """Return one table; the best of a column is bold."""
    letter = "r" if table.numeric else "l"
    rows = "\n".join(_rows(table))
    heads = " & ".join(line(text) for text in (table.corner, *table.columns))
    notes = "".join(f"\n\\par\\footnotesize {line(note)}" for note in table.notes)
    return (
        "\\begin{table}\n\\centering\n"
        f"\\caption{{{line(f'{table.title}. {table.caption}')}}}\n\\label{{tab:{table.id}}}\n"
        "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%\n"
        f"\\begin{{tabular}}{{l{letter * len(table.columns)}}}\n\\toprule\n{heads} \\\\\n"
        f"\\midrule\n{rows}\n\\bottomrule\n\\end{{tabular}}}}{notes}\n\\end{{table}}"
    )


def _rows(table: Table) -> Iterator[str]:
    groups = table.groups()
    for number, (group, rows) in enumerate(groups):
        if group and len(groups) > 1:
            yield from ["\\addlinespace"] if number else []
            yield f"\\multicolumn{{{len(table.columns) + 1}}}{{l}}{{\\emph{{{line(group)}}}}} \\\\"
        yield from (_row(row) for row in rows)


def _row(row: Row) -> str:
    return " & ".join([line(row.title), *map(_value, row.values)]) + " \\\\"


def _value(value: Value) -> str:
    text = line(value.marked)
    text = f"\\textbf{{{text}}}" if value.best else text
    return f"{text} {{\\footnotesize({line(value.note)})}}" if value.note else text


def line(text: str) -> str:
    """Return text on one line that LaTeX sets as it is."""
    safe = _UNSAFE.sub(lambda match: _SPECIAL[match[0]], escape_lines(text))
    safe = _PAIR.sub(r"\1{}", safe)
    return "".join(
        c if ord(c) <= _LAST and c not in _LACKING else f"{{[}}U+{ord(c):04X}]" for c in safe
    )
