"""Pathfinder's folders and zips that are broken: the fault, and the file and row where it is."""

import warnings
import zipfile

import numpy as np
import pytest
from pathfinder_forms import (
    EASY,
    HARD,
    IN_SHARD,
    WHOLE,
    below,
    image,
    level_files,
    lines,
    png,
    saved,
    set_files,
    task,
    text,
    write_folder,
    write_zip,
)
from set_reader import noted, read_set
from set_reader import refused as refused_by


def refused(source, says, **config):
    refused_by(says, read_set, task(**config), source)


def found(source, **config):
    """The defects of a source without their remedies, and the number of images that are read."""
    defects, examples = noted(task(**config), source)
    return [defect.rpartition(";")[0] for defect in defects], len(examples)


def level(root, **changed):
    """A level of which files are changed by name, or left out."""
    files = {name.replace("__", "/", 1) + ".npy": held for name, held in changed.items()}
    return write_folder(root, level_files(HARD) | files)


def with_line(root, line):
    described = lines(2)
    described[3] = line
    return level(root, metadata__2=text(described))


def without(root, *gone):
    files = level_files(HARD)
    return write_folder(root, {n: held for n, held in files.items() if not n.startswith(gone)})


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("imgs/2 sample_3.png 3 1 1.0 14 4 2 0.5 1", "10 fields, not 11"),
        ("imgs/2  sample_3.png 3 1 1.0 14 4 2 0.5 1 1", "12 fields, not 11"),
        ("", "1 fields, not 11"),
        ("imgs/0 sample_3.png 3 1 1.0 14 4 2 0.5 1 1", "the folder is 'imgs/0', not imgs/2"),
        ("imgs/2 sample_2.png 2 1 1.0 14 4 2 0.5 1 1", "'imgs/2/sample_2.png' is named twice"),
        ("imgs/2 sample_99.png 99 1 1.0 14 4 2 0.5 1 1", "'imgs/2/sample_99.png' is missing"),
        ("imgs/2 ../../secret.png 3 1 1.0 14 4 2 0.5 1 1", "'imgs/2/../../secret.png' is missing"),
    ],
)
def test_a_line_that_is_wrong_is_named_and_its_image_left_out(tmp_path, line, says):
    write_folder(tmp_path, {"secret.png": png(image(HARD, 0, 0))})
    root = with_line(tmp_path / "set" / HARD, line)
    assert found(root) == ([f"'{root}/metadata/2.npy', row 4: {says}"], WHOLE - 1)
    refused(root, r"metadata/2.npy', row 4: ")


def test_more_images_without_a_line_than_wrong_lines_are_told_beside_these(tmp_path):
    described = lines(2)
    described[3:5] = ["imgs/2"]
    root = level(tmp_path, metadata__2=text(described))
    (wrong, unnamed), count = found(root)
    assert wrong == f"'{root}/metadata/2.npy', row 4: 1 fields, not 11" and count == WHOLE - 2
    assert unnamed.startswith(f"'{root}/imgs/2' has images that '{root}/metadata/2.npy'")
    assert unnamed.endswith("2, the first sample_3.png")


@pytest.mark.parametrize("label", ["2", "-1", "x", "\u0663"])
def test_a_wrong_label_is_one_defect(tmp_path, label):
    root = with_line(tmp_path / HARD, f"imgs/2 sample_3.png 3 {label} 1.0 14 4 2 0.5 1 1")
    says = f"'{root}/metadata/2.npy', row 4: label '{label}' is not one of 0 ... 1"
    assert found(root) == ([says], WHOLE - 1)
    refused(root, r"metadata/2.npy', row 4: label ")


BAD_IMAGES = {
    b"": "is empty",
    b"GIF89a": "is no whole PNG",
    png(image(HARD, 2, 3))[:-600]: "is no whole PNG",
    png(image(HARD, 2, 3, side=64)): "has 64 x 64 pixels, not 32 x 32",
    png(image(HARD, 2, 3), "RGB"): "has pixels of mode RGB, not L",
    png(image(HARD, 2, 3), "1"): "has pixels of mode 1, not L",
}


@pytest.mark.parametrize(("content", "says"), BAD_IMAGES.items(), ids=BAD_IMAGES.values())
@pytest.mark.parametrize("zipped", [False, True])
def test_an_image_that_is_wrong_is_named_and_left_out(tmp_path, content, says, zipped):
    files = level_files(HARD) | {"imgs/2/sample_3.png": content}
    root = write_zip(tmp_path / "level.zip", files) if zipped else write_folder(tmp_path, files)
    assert found(root) == ([f"'{root}/imgs/2/sample_3.png' {says}"], WHOLE - 1)
    refused(root, "sample_3.png")


def test_files_numbers_and_names_that_are_missing(tmp_path):
    root = without(tmp_path / "a", "metadata/2.npy")
    says = f"'{root}/metadata/2.npy' is missing beside imgs/2"
    assert found(root) == ([says], WHOLE - IN_SHARD)
    root = without(tmp_path / "b", "imgs/2/")
    assert found(root) == ([f"'{root}/metadata/2.npy' has no images imgs/2"], WHOLE - IN_SHARD)
    root = level(tmp_path / "c", metadata__10=text(lines(10)[:20]))
    (says,), count = found(root)
    assert "metadata/10.npy' does not name: 10, the first sample_20.png" in says
    assert count == WHOLE - 10
    root = without(tmp_path / "d", *(f"{p}{n}" for p in ("metadata/", "imgs/") for n in (3, 4, 7)))
    says, count = found(root)
    gone = [f"'{root}/metadata/{number}.npy' and imgs/{number} are missing" for number in (3, 7)]
    assert [line.partition(",")[0] for line in says] == gone and count == WHOLE - 90
    refused(root, "metadata/3.npy' and imgs/3 are missing")


TABLE = np.array([line.split() for line in lines(2)])


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (saved(np.zeros((30, 11))), r"' holds float64 of \(30, 11\)"),
        (saved(np.array(lines(2))), r"' holds <U44 of \(30,\)"),
        (saved(np.array([None]), allow_pickle=True), "' is no whole .npy file"),
        (saved(np.array([lines(2)])).replace(b"i\0\0\0", b"i\0\0\xff"), "' is no whole .npy file"),
        (saved(np.array([lines(2)])).replace(b", }", b", ("), "' is no whole .npy file"),
        (saved(TABLE)[:-9], "' is no whole .npy file"),
        (saved(TABLE[:, :9]), "', row 1: 9 fields, not 11"),
    ],
)
def test_a_metadata_array_that_is_wrong(tmp_path, content, says):
    refused(level(tmp_path, metadata__2=content), rf"metadata/2.npy{says}")


@pytest.mark.parametrize(
    ("place", "content", "shown"),
    [(1, b"\xe9", "\ufffd"), (3, b"\xe9", "\ufffd"), (3, "\ud800", "label '?'")],
)
def test_characters_that_are_none_are_a_wrong_field(tmp_path, place, content, shown):
    rows = [line.split() for line in lines(2)]
    if isinstance(content, bytes):
        rows = [[field.encode() for field in row] for row in rows]
    rows[3][place] = content
    root = level(tmp_path, metadata__2=saved(np.array(rows)))
    says, count = found(root)
    assert count == WHOLE - 1 and len(says) == 1
    assert says[0].startswith(f"'{root}/metadata/2.npy', row 4: ") and shown in says[0]


def test_a_zip_that_is_cut_short_or_damaged(tmp_path):
    path = write_zip(tmp_path / "set.zip", below("pathfinder32", set_files(HARD)))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    refused(path, "set.zip' is a zip archive that is cut short or damaged")
    # Pixels that compress to nothing else: a byte in the midst of the second image's.
    middle = whole.index(b"imgs/0/sample_1.png") + 600
    path.write_bytes(whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :])
    name = f"pathfinder32/{HARD}/imgs/0/sample_1.png"
    assert found(path) == ([f"'{path}/{name}' is damaged or locked"], WHOLE - 1)


@pytest.mark.parametrize(
    ("content", "says"),
    [(b"\x1f\x8b\x08", "gzip"), (b"text", "neither a folder nor"), (b"", "neither a folder nor")],
)
def test_another_file_is_refused(tmp_path, content, says):
    (tmp_path / "lra_release.gz").write_bytes(content)
    refused(tmp_path / "lra_release.gz", f"lra_release.gz' is (a )?{says}")


def test_folders_without_the_set_the_level_or_anything(tmp_path):
    refused(tmp_path / "nothing", "no file or folder")
    refused(tmp_path, "is no Pathfinder set")
    write_folder(tmp_path / "release" / "pathfinder64" / HARD, {"metadata/0.npy": b""})
    refused(tmp_path / "release", "has no pathfinder32, only pathfinder64")
    write_folder(tmp_path / "set", set_files(EASY))
    refused(tmp_path / "set", f"has no {HARD}, only {EASY}; ")
    refused(tmp_path / "set", f"level of contour length 7, only {EASY}; ", contour_length=7)
    (tmp_path / "empty" / "imgs").mkdir(parents=True)
    refused(tmp_path / "empty", "empty' holds no images")
    root = level(tmp_path / "named", metadata__combined=b"")
    refused(root, r"metadata/combined.npy' is not named by a number")


def test_a_level_that_is_named_itself_and_another_contour_length(tmp_path):
    easy = write_folder(tmp_path / EASY, level_files(EASY))
    refused(easy, "baseline' holds paths of 6 paddles, contour_length is 14", contour_length=14)
    assert found(easy, contour_length=6) == found(easy) == ([], WHOLE)
    other = write_folder(tmp_path / "renamed", level_files(HARD))
    refused(other, "renamed' holds paths of 14 paddles, contour_length is 9", contour_length=9)
    assert found(other, contour_length=14) == found(other) == ([], WHOLE)
    (other / "metadata" / "0.npy").write_bytes(b"no line of metadata\n")
    assert found(other, contour_length=9)[0][0] == (
        f"'{other}/metadata/0.npy', row 1: 4 fields, not 11"
    )


@pytest.mark.parametrize("again", ["imgs/2/sample_3.png", "./imgs/2//sample_3.png"])
def test_a_zip_with_two_files_of_a_name(tmp_path, again):
    path = write_zip(tmp_path / "set.zip", level_files(HARD))
    with zipfile.ZipFile(path, "a") as archive, warnings.catch_warnings():
        # Python warns of it itself.
        warnings.simplefilter("ignore")
        for name in ("imgs/", "imgs/", "__MACOSX/._a", "__MACOSX/._a", "imgs/.b", "imgs/.b"):
            archive.writestr(name, b"")
    assert found(path) == ([], WHOLE)
    with zipfile.ZipFile(path, "a") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        archive.writestr(again, png(image(HARD, 0, 0)))
    refused(path, r"set.zip' holds more than one file of a name, .* 'imgs/2/sample_3.png'; ")
