const MEMORY_MIB = 512;

/**
 * Emulated, because only emulation works everywhere. Paths are short and relative, because the path of a socket may
 * have at most 107 bytes.
 */
export const qemuWords = (firmware: readonly string[]): readonly string[] => [
  ...firmware.flatMap((folder) => ['-L', folder]),
  // The cache of translated code would otherwise grow to a gigabyte.
  '-accel',
  'tcg,tb-size=256',
  '-cpu',
  'Nehalem,-spec-ctrl',
  '-machine',
  'q35',
  '-m',
  String(MEMORY_MIB),
  '-smp',
  '1',
  '-nodefaults',
  '-display',
  'none',
  '-qmp',
  'unix:qmp.sock,server=on,wait=off',
  '-serial',
  'file:console.log',
  // What the guest has written to its disk is in the host's memory at once, and survives when qemu is killed. What it
  // has not written is lost.
  '-drive',
  'if=none,id=root,file=disk.img,format=raw,cache=unsafe',
  '-device',
  'virtio-blk-pci,drive=root,bootindex=2',
  '-drive',
  'if=none,id=grub,file=grub.img,format=raw,readonly=on',
  '-device',
  'virtio-blk-pci,drive=grub,bootindex=1',
  '-netdev',
  'user,id=net',
  '-device',
  'virtio-net-pci,netdev=net,romfile=',
  '-device',
  'virtio-rng-pci',
  '-device',
  'virtio-serial-pci',
  '-chardev',
  'socket,id=ga,path=ga.sock,server=on,wait=off',
  '-device',
  'virtserialport,chardev=ga,name=org.qemu.guest_agent.0',
];
