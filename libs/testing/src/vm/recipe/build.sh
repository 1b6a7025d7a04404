#!/usr/bin/env bash
# Builds the disk of a test node from Debian's packages, which come from where this machine has its own (as root; no loop mounts, no KVM).
#   build.sh OUT NODE VERSION    -> OUT/disk.img (root file system), OUT/grub.img (boot loader)
# NODE is the program that the node gets as its nodejs, of that VERSION: Debian's own is too old.
set -euo pipefail
out=$1 node=$2 version=$3
here=$(cd "$(dirname "$0")" && pwd)
root=$out/root
words() { tr -s ' \n' "$1" < "$here/$2" | sed "s/$1\$//"; }
inside() { chroot "$root" "$@"; }

. /etc/os-release
sources=$(grep -lE "debian-archive-keyring|^deb[^#]*/debian " /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | xargs -r grep -lw "$VERSION_CODENAME" | head -1 || true)
[ -n "$sources" ] || { echo "no file below /etc/apt names the packages of Debian $VERSION_CODENAME" >&2; exit 1; }
eval "$(apt-config shell proxy Acquire::http::Proxy)"
mmdebstrap --quiet --variant=apt --include="$(words , packages)" ${proxy:+--aptopt="Acquire::http::Proxy \"$proxy\""} \
  --aptopt='Apt::Install-Recommends "false"' --aptopt='Acquire::Languages "none"' --aptopt='Acquire::Retries "3"' \
  --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
  --dpkgopt='path-exclude=/etc/kernel/postinst.d/initramfs-tools' \
  "$VERSION_CODENAME" "$root" "$sources"

# Node.js as a package, so that what depends on it is installed as on any machine.
# It runs in one thread: on the one emulated processor V8's other threads cost more than they help.
mkdir -p "$out/nodejs/DEBIAN" "$out/nodejs/usr/bin" "$out/nodejs/usr/lib/nodejs"
install -m 755 "$node" "$out/nodejs/usr/lib/nodejs/node"
printf '#!/bin/sh\nexec /usr/lib/nodejs/node --single-threaded "$@"\n' > "$out/nodejs/usr/bin/node"
chmod 755 "$out/nodejs/usr/bin/node"
printf 'Package: nodejs\nVersion: %s\nArchitecture: amd64\nMaintainer: the rig <rig@localhost>\nDepends: libstdc++6\nDescription: the Node.js of the machine that built this\n' "$version" > "$out/nodejs/DEBIAN/control"
dpkg-deb -Znone --root-owner-group --build "$out/nodejs" "$root/tmp/nodejs.deb" > /dev/null
inside dpkg -i /tmp/nodejs.deb > /dev/null
rm -rf "$root/tmp/nodejs.deb" "$out/nodejs" "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/usr/share/grub/themes
cp -r --no-preserve=ownership "$here/tree/." "$root/"

# An initrd of 1 MB.
kernel=$(basename "$root"/lib/modules/*)
initrd=$root/tmp/initrd
mkdir -p "$initrd"/{bin,proc,dev,sysroot}
cp "$root/bin/busybox" "$initrd/bin/"
install -m 755 "$here/initrd-init" "$initrd/init"
echo virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_blk > "$initrd/modules"
for module in $(cat "$initrd/modules"); do cp "$(find "$root/lib/modules/$kernel" -name "$module.ko")" "$initrd/"; done
inside sh -c 'cd /tmp/initrd && busybox find . | busybox cpio -o -H newc 2>/dev/null | gzip -1' > "$root/boot/initrd.img-$kernel"
rm -rf "$initrd"
ln -sf "boot/vmlinuz-$kernel" "$root/vmlinuz"
ln -sf "boot/initrd.img-$kernel" "$root/initrd.img"

# GRUB without grub-install: its boot sector and its core, back to back, are a disk that boots; the core finds the root by its label.
cp "$here/grub-core.cfg" "$root/tmp/core.cfg"
inside grub-mkimage -O i386-pc -p /boot/grub -c /tmp/core.cfg -o /tmp/core.img \
  biosdisk ext2 search search_label configfile normal linux echo test loadenv serial terminal gzio part_msdos ls cat
cat "$root/usr/lib/grub/i386-pc/boot.img" "$root/tmp/core.img" > "$out/grub.img"
truncate -s 1M "$out/grub.img"
rm -f "$root"/tmp/core.*
cp -r "$root/usr/lib/grub/i386-pc" "$root/boot/grub/"
inside grub-editenv /boot/grub/grubenv create

units() { SYSTEMD_OFFLINE=1 inside systemctl --quiet "$@" 2>/dev/null || true; }
units enable rig-net.service qemu-guest-agent.service
units disable frr.service nftables.service systemd-networkd.service
# shellcheck disable=SC2046
units mask $(words ' ' masked)
units set-default multi-user.target
# Empty, and not "first boot", which would enable whatever may be.
: > "$root/etc/machine-id"
sed -i 's/^bgpd=no/bgpd=yes/' "$root/etc/frr/daemons"

mke2fs -q -t ext4 -L node-root -d "$root" -E lazy_itable_init=1,lazy_journal_init=1 "$out/disk.img" 1500M
rm -rf "$root"
