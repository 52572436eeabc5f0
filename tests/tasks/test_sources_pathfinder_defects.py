"""Pathfinder's folders and zips that are broken: what is wrong, where, and what to do."""

import io

import numpy as np
import pytest
from pathfinder_forms import (
    ALL,
    EASY,
    HARD,
    IN_SHARD,
    SHARDS,
    below,
    image,
    level_files,
    lines,
    noted,
    png,
    set_files,
    task,
    text,
    write_folder,
    write_zip,
)
from set_reader import read_set

from lra.core.errors import DataError

WHOLE = len(SHARDS) * IN_SHARD


def refused(source, says, **config):
    with pytest.raises(DataError, match=says) as caught:
        read_set(task(**config), source, ALL)
    assert "\n" not in str(caught.value)


def changed(tmp_path, **rows):
    """A level with lines of `metadata/2.npy` changed: row (from 1) to its fields."""
    described = lines(2)
    for row, line in rows.items():
        described[int(row[1:]) - 1] = line
    files = level_files(HARD)
    files["metadata/2.npy"] = text(described)
    return write_folder(tmp_path, files)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("imgs/2 sample_3.png 3 1 1.0 14 4 2 0.5 1", "10 fields, not 11; unpack the set again"),
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
    root = changed(tmp_path / "set" / HARD, r4=line)
    (first, unnamed), count = noted(root)
    assert first.startswith(f"'{root}/metadata/2.npy', row 4: {says}")
    assert unnamed == (
        f"'{root}/imgs/2' has images that '{root}/metadata/2.npy' does not name: 1, "
        f"the first sample_3.png; copy or unpack the set again"
    )
    assert count == WHOLE - 1
    refused(root, r"metadata/2.npy', row 4: ")


@pytest.mark.parametrize("label", ["2", "-1", "x", "\u0663"])
def test_a_wrong_label_is_one_defect(tmp_path, label):
    root = changed(tmp_path / HARD, r4=f"imgs/2 sample_3.png 3 {label} 1.0 14 4 2 0.5 1 1")
    says = f"row 4: label '{label}' is not one of 0 ... 1; correct the row"
    assert noted(root) == ([f"'{root}/metadata/2.npy', {says}"], WHOLE - 1)
    refused(root, r"metadata/2.npy', row 4: label ")


BAD_IMAGES = {
    b"": "is empty; copy or unpack it again",
    b"GIF89a": "is no whole PNG; copy or unpack it again",
    png(image(HARD, 2, 3))[:-600]: "is no whole PNG; copy or unpack it again",
    png(image(HARD, 2, 3, side=64)): "has 64 x 64 pixels, not 32 x 32; give one of that size",
    png(image(HARD, 2, 3), "RGB"): "has pixels of mode RGB, not L; convert it",
    png(image(HARD, 2, 3), "1"): "has pixels of mode 1, not L; convert it",
}


@pytest.mark.parametrize(("content", "says"), BAD_IMAGES.items(), ids=BAD_IMAGES.values())
@pytest.mark.parametrize("zipped", [False, True])
def test_an_image_that_is_wrong_is_named_and_left_out(tmp_path, content, says, zipped):
    files = level_files(HARD) | {"imgs/2/sample_3.png": content}
    root = write_zip(tmp_path / "level.zip", files) if zipped else write_folder(tmp_path, files)
    assert noted(root) == ([f"'{root}/imgs/2/sample_3.png' {says}"], WHOLE - 1)
    refused(root, "sample_3.png")


def test_a_metadata_file_or_a_folder_of_images_that_is_missing(tmp_path):
    files = level_files(HARD)
    del files["metadata/2.npy"]
    root = write_folder(tmp_path / "a", files)
    says = f"'{root}/metadata/2.npy' is missing beside imgs/2; copy or unpack the set again"
    assert noted(root) == ([says], WHOLE - IN_SHARD)
    files = {name: held for name, held in level_files(HARD).items() if "imgs/2/" not in name}
    root = write_folder(tmp_path / "b", files)
    says = f"'{root}/metadata/2.npy' has no images imgs/2; copy or unpack the set again"
    assert noted(root) == ([says], WHOLE - IN_SHARD)


def test_images_that_no_line_names_are_counted_once(tmp_path):
    files = level_files(HARD)
    files["metadata/10.npy"] = text(lines(10)[:20])
    root = write_folder(tmp_path, files)
    (says,), count = noted(root)
    assert "metadata/10.npy' does not name: 10, the first sample_20.png; copy" in says
    assert count == WHOLE - 10


def saved(value, pickled=False):
    stream = io.BytesIO()
    np.save(stream, value, allow_pickle=pickled)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (saved(np.zeros((30, 11))), r"holds float64 of \(30, 11\); give strings of \(N, 11\)"),
        (saved(np.array(lines(2))), r"holds <U44 of \(30,\); give strings of \(N, 11\)"),
        (
            saved(np.array([None]), pickled=True),
            "is no whole .npy file of numbers or strings; copy",
        ),
        (saved(np.array([lines(2)])).replace(b"i\0\0\0", b"i\0\0\xff"), "is no whole .npy file"),
        (saved(np.array([lines(2)])).replace(b", }", b", ("), "is no whole .npy file of numbers"),
        (saved(np.array([line.split() for line in lines(2)]))[:-9], "is no whole .npy file"),
        (saved(np.array([line.split()[:9] for line in lines(2)])), "', row 1: 9 fields, not 11"),
    ],
)
def test_a_metadata_array_that_is_wrong(tmp_path, content, says):
    root = write_folder(tmp_path, level_files(HARD) | {"metadata/2.npy": content})
    refused(root, rf"metadata/2.npy'? ?{says}")


def test_a_metadata_file_that_has_no_number(tmp_path):
    root = write_folder(tmp_path, level_files(HARD) | {"metadata/combined.npy": b""})
    refused(root, r"metadata/combined.npy' is not named by a number as 0.npy is; rename or remove")


def test_a_zip_that_is_cut_short_or_damaged(tmp_path):
    path = write_zip(tmp_path / "set.zip", below("pathfinder32", set_files(levels=(HARD,))))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    refused(path, "set.zip' is a zip archive that is cut short or damaged; copy or download")
    # Pixels that compress to nothing else: a byte in the midst of the second image's.
    middle = whole.index(b"imgs/0/sample_1.png") + 600
    path.write_bytes(whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :])
    name = f"pathfinder32/{HARD}/imgs/0/sample_1.png"
    says = f"'{path}/{name}' is damaged or locked; copy or download the zip again"
    assert noted(path) == ([says], WHOLE - 1)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"\x1f\x8b\x08", "is a gzip archive; unpack it with tar -xzf lra_release.gz, give"),
        (b"text", "is neither a folder nor a zip archive; give one of these"),
        (b"", "is neither a folder nor a zip archive; give one of these"),
    ],
)
def test_another_file_is_refused(tmp_path, content, says):
    path = tmp_path / "lra_release.gz"
    path.write_bytes(content)
    refused(path, f"lra_release.gz' {says}")


def test_folders_without_the_set_the_level_or_anything(tmp_path):
    refused(tmp_path / "nothing", "check the path")
    refused(tmp_path, "is no Pathfinder set; give a folder or zip with curv_contour_length_14")
    write_folder(tmp_path / "release" / "pathfinder64" / HARD, {"metadata/0.npy": b""})
    refused(tmp_path / "release", "has no pathfinder32, only pathfinder64; give the images of 32")
    write_folder(tmp_path / "set", below(EASY, level_files(EASY)))
    refused(tmp_path / "set", f"has no {HARD}, only {EASY}; name one of these, or set contour_len")
    says = f"has no level of contour length 7, only {EASY}; name one of these, .* \\(14 is curv"
    refused(tmp_path / "set", says, contour_length=7)
    (tmp_path / "empty" / "imgs").mkdir(parents=True)
    refused(tmp_path / "empty", "empty' holds no images; copy or unpack the set again")


def test_numbers_that_are_missing_are_told(tmp_path):
    gone = ("metadata/3.", "metadata/4.", "metadata/7.", "imgs/3/", "imgs/4/", "imgs/7/")
    files = {n: held for n, held in level_files(HARD).items() if not n.startswith(gone)}
    root = write_folder(tmp_path, files)
    says = [
        f"'{root}/metadata/{number}.npy' and imgs/{number} are missing, though later ones are "
        "there; copy or unpack the set again"
        for number in (3, 7)
    ]
    assert noted(root) == (says, WHOLE - 90)
    refused(root, "metadata/3.npy' and imgs/3 are missing")


@pytest.mark.parametrize("field", ["sample_3.png", "1"])
def test_bytes_that_are_no_text_in_an_array_are_a_wrong_field(tmp_path, field):
    rows = [line.encode().split() for line in lines(2)]
    rows[3][1 if field == "sample_3.png" else 3] = b"\xe9"
    root = write_folder(tmp_path, level_files(HARD) | {"metadata/2.npy": saved(np.array(rows))})
    told, count = noted(root)
    assert count == WHOLE - 1 and len(told) == (2 if field == "sample_3.png" else 1)
    assert told[0].startswith(f"'{root}/metadata/2.npy', row 4: ") and "\ufffd" in told[0]


def test_half_a_character_in_an_array_is_a_wrong_label(tmp_path):
    rows = [line.split() for line in lines(2)]
    rows[3][3] = "\ud800"
    root = write_folder(tmp_path, level_files(HARD) | {"metadata/2.npy": saved(np.array(rows))})
    (told,), _ = noted(root)
    assert told.startswith(f"'{root}/metadata/2.npy', row 4: label '?' is not one of 0 ... 1")


def test_a_level_that_is_named_itself_and_another_contour_length(tmp_path):
    easy = write_folder(tmp_path / EASY, level_files(EASY))
    refused(
        easy, r"baseline' holds paths of 6 paddles, contour_length is 14; name", contour_length=14
    )
    assert noted(easy, contour_length=6) == noted(easy) == ([], WHOLE)
    other = write_folder(tmp_path / "renamed", level_files(HARD))
    refused(other, r"renamed' holds paths of 14 paddles, contour_length is 9; n", contour_length=9)
    assert noted(other, contour_length=14) == noted(other) == ([], WHOLE)
    (other / "metadata" / "0.npy").write_bytes(b"no line of metadata\n")
    assert noted(other, contour_length=9)[0][0].startswith(
        f"'{other}/metadata/0.npy', row 1: 4 fields, not 11"
    )
