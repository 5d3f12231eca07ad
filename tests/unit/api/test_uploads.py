"""Multipart bodies: what arrives on disk is what was sent, and caps hold while bytes arrive."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.api.uploads import MAX_FILES, Upload, UploadReceiver
from app.core.errors import DocuMindError, InvalidInput, TooLarge, UnsupportedType

BOUNDARY = "b0undary"
TYPE = f"multipart/form-data; boundary={BOUNDARY}"


def part(name: str, content: bytes, filename: bytes | None = None) -> bytes:
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"'.encode()
    if filename is not None:
        head += b'; filename="' + filename + b'"'
    return head + b"\r\n\r\n" + content + b"\r\n"


END = f"--{BOUNDARY}--\r\n".encode()


def receive(
    tmp_path: Path, body: bytes, step: int = 1 << 20, *, max_file_bytes: int = 1000
) -> tuple[Upload, list[bytes]]:
    receiver = UploadReceiver(
        TYPE,
        tmp_path / "uploads",
        max_file_bytes=max_file_bytes,
        allowed_fields=frozenset({"library", "source_key"}),
    )
    try:
        for at in range(0, len(body), step):
            receiver.feed(body[at : at + step])
        upload = receiver.finish()
        return upload, [file.path.read_bytes() for file in upload.files]
    finally:
        receiver.discard()
        assert list((tmp_path / "uploads").iterdir()) == []


def test_files_and_fields_arrive_in_order(tmp_path: Path) -> None:
    body = (
        part("library", b"papers")
        + part("file", b"one", b"a.txt")
        + part("source_key", b"x/a.txt")
        + part("files", b"", "\u00e4 \u6570.pdf".encode())
        + part("source_key", b"x/b.txt")
        + END
    )
    upload, contents = receive(tmp_path, body)
    assert [file.raw_name for file in upload.files] == ["a.txt", "\u00e4 \u6570.pdf"]
    assert contents == [b"one", b""]
    assert [file.size_bytes for file in upload.files] == [3, 0]
    assert upload.fields == {"library": ["papers"], "source_key": ["x/a.txt", "x/b.txt"]}


@settings(max_examples=60)
@given(content=st.binary(max_size=300), step=st.integers(1, 40))
def test_any_bytes_in_any_pieces_arrive_as_they_were(
    content: bytes, step: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    if f"\r\n--{BOUNDARY}".encode() in b"\r\n" + content:
        return
    _, [found] = receive(tmp_path_factory.mktemp("up"), part("file", content, b"x") + END, step)
    assert found == content


def test_content_that_looks_like_a_boundary_is_content(tmp_path: Path) -> None:
    content = b"\r\n--b0undar\r\n--b0\r\n-\r\n"
    assert receive(tmp_path, part("file", content, b"x") + END, 3)[1] == [content]


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        (b"../../etc/passwd", "../../etc/passwd"),
        (b"C:\\\\temp\\\\x.pdf", "x.pdf"),
        (b"say %22hi%22.txt", 'say "hi".txt'),
        (b"\xff\xfe.txt", "\u00ff\u00fe.txt"),
        (b"<script>.html", "<script>.html"),
    ],
)
def test_odd_names_are_only_data(raw: bytes, name: str, tmp_path: Path) -> None:
    upload, _ = receive(tmp_path, part("file", b"x", raw) + END)
    assert upload.files[0].raw_name == name
    assert upload.files[0].path.name == "0000.part"


@pytest.mark.parametrize(
    ("body", "error", "says"),
    [
        (part("file", b"x" * 1001, b"big.txt") + END, TooLarge, "'big.txt'"),
        (part("file", b"x") + END, InvalidInput, "no file name"),
        (part("library", b"papers") + END, InvalidInput, "no file in the form"),
        (part("librray", b"papers") + END, InvalidInput, "'librray'"),
        (part("library", b"x" * 5000) + END, InvalidInput, "over 4096"),
        (part("file", b"x", b"a.txt"), InvalidInput, "closing boundary"),
        (b"no boundary here", InvalidInput, "malformed"),
        (b"", InvalidInput, "closing boundary"),
        (f"--{BOUNDARY}\r\n".encode() + b"X: " + b"y" * 9000, InvalidInput, "header"),
        (
            b"".join(part("file", b"", b"%d" % n) for n in range(MAX_FILES + 1)) + END,
            InvalidInput,
            "over 1000 files",
        ),
    ],
)
def test_what_is_refused(
    body: bytes, error: type[DocuMindError], says: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=says):
        receive(tmp_path, body)


def test_the_cap_holds_before_the_rest_has_come(tmp_path: Path) -> None:
    receiver = UploadReceiver(TYPE, tmp_path, max_file_bytes=10, allowed_fields=frozenset())
    receiver.feed(part("file", b"", b"x")[:-2])
    receiver.feed(b"x" * 10)
    with pytest.raises(TooLarge):
        receiver.feed(b"x")
    assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) <= 10
    receiver.discard()


@pytest.mark.parametrize("content_type", ["", "application/json", "text/plain; boundary=x"])
def test_other_content_types_are_refused(content_type: str, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedType, match="multipart/form-data"):
        UploadReceiver(content_type, tmp_path, max_file_bytes=1, allowed_fields=frozenset())
    with pytest.raises(InvalidInput, match="boundary"):
        UploadReceiver(
            "multipart/form-data", tmp_path, max_file_bytes=1, allowed_fields=frozenset()
        )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux that is always full")
def test_what_a_full_disk_left_is_removed_although_it_cannot_be_written_to_its_end(
    tmp_path: Path,
) -> None:
    receiver = UploadReceiver(TYPE, tmp_path, max_file_bytes=10**6, allowed_fields=frozenset())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "open", lambda _, mode: open("/dev/full", mode))  # noqa: PTH123, SIM115  # stands for a full disk
        receiver.feed(part("file", b"still buffered", b"a.txt").removesuffix(b"\r\n"))
    receiver.discard()
    assert list(tmp_path.iterdir()) == []


BODY = (
    b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\none\r\n--b--\r\n'
)


@settings(max_examples=200)
@given(
    boundary=st.one_of(
        st.text(st.characters(max_codepoint=255), max_size=300),
        st.text("b", min_size=250, max_size=400),
        st.sampled_from(["b*=utf-8''x", '"b', "b; boundary=c", "\x00", "=?utf-8?q?b?="]),
    )
)
def test_any_boundary_is_read_or_refused(
    boundary: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    staging = tmp_path_factory.mktemp("staging") / "uploads"
    try:
        receiver = UploadReceiver(
            f"multipart/form-data; boundary={boundary}",
            staging,
            max_file_bytes=1000,
            allowed_fields=frozenset(),
        )
    except InvalidInput:
        assert not staging.exists()
        return
    try:
        receiver.feed(BODY)
        receiver.finish()
    except InvalidInput:
        pass
    finally:
        receiver.discard()
        assert list(staging.iterdir()) == []
