"""Disks that can fail: an ext4 image with power cuts, a small one that fills up. Needs root.

A power cut is ext4's own shutdown ioctl without a log flush: data without an fsync is lost, synced
data survives the next mount. The image uses a loop device, so the test machine's own disk is not
affected.
"""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.cluster import Cluster
from tests.support.databases import with_name
from tests.support.requirements import need

# include/uapi/linux/ext4.h: _IOR('X', 125, __u32)
EXT4_IOC_SHUTDOWN = 0x8004_587D
NO_LOG_FLUSH = 2


class Volume:
    """A mounted ext4 image."""

    def __init__(self, image: Path, path: Path) -> None:
        self.path = path
        self._image = image

    def mount(self) -> None:
        _run("mount", "-o", "loop", str(self._image), str(self.path))

    def cut(self) -> None:
        """Cut the power: every later write, fsync and open on it fails."""
        handle = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.ioctl(handle, EXT4_IOC_SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
        finally:
            os.close(handle)

    def repower(self) -> None:
        """Unmount and mount again, which replays the file system's journal."""
        self.unmount()
        self.mount()

    def unmount(self) -> None:
        _run("umount", str(self.path))


@contextmanager
def ext4(folder: Path, mib: int) -> Iterator[Volume]:
    """Mount a new ext4 volume of `mib` in `folder`."""
    for tool in ("linux", "root", "mkfs.ext4", "losetup"):
        need(tool)
    image, path = folder / "disk.img", folder / "disk"
    path.mkdir()
    with image.open("wb") as handle:
        handle.truncate(mib * 2**20)
    _run(need("mkfs.ext4"), "-q", "-E", "lazy_itable_init=0", str(image))
    volume = Volume(image, path)
    volume.mount()
    try:
        yield volume
    finally:
        volume.unmount()


@contextmanager
def tmpfs(folder: Path, mib: int) -> Iterator[Path]:
    """Mount a small file system in memory in `folder`."""
    for tool in ("linux", "root"):
        need(tool)
    path = folder / "small"
    path.mkdir()
    _run("mount", "-t", "tmpfs", "-o", f"size={mib}m", "none", str(path))
    try:
        yield path
    finally:
        _run("umount", str(path))


async def on_small_disk(cluster: Cluster, disk: Path) -> str:
    """Create a database whose tables are on `disk`, apart from the server's log; return its URL."""
    space = disk / "space"
    space.mkdir()
    cluster.give(space)
    await cluster.run(f"create tablespace small location '{space}'")
    await cluster.run("create database carteiro tablespace small")
    return with_name(cluster.url, "carteiro")


def fill(disk: Path) -> Path:
    """Use all free space; return the file that has it."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as handle:
        for size in (2**16, 2**12):
            try:
                while True:
                    handle.write(b"\0" * size)
            except OSError:
                continue
    return ballast


def shrink(path: Path) -> None:
    """Take all free space from a `tmpfs` while others write to it."""
    while True:
        figures = os.statvfs(path)
        used = (figures.f_blocks - figures.f_bfree) * figures.f_frsize
        try:
            resize(path, str(used))
        except subprocess.CalledProcessError:
            # Somebody has written in between, and it cannot be smaller than its content.
            continue
        return


def resize(path: Path, size: str) -> None:
    """Give a `tmpfs` another size, as mount(8) takes it."""
    _run("mount", "-o", f"remount,size={size}", str(path))


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
