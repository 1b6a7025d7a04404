import { hasPlace, placesOf, readBlocks, textOf, without, withLines } from './frr-text.js';

const TEXT = `frr version 8.4.4
hostname vm
!
ip route 10.0.0.0/8 blackhole
vrf red
 vni 100
exit-vrf
!
router bgp 64512
 neighbor a remote-as 1
 !
 address-family ipv4 unicast
  network 10.0.0.0/8
 exit-address-family
exit
!
end
`;
const bare = (text: string): string =>
  text
    .split('\n')
    .filter((line) => line.trim() !== '!')
    .join('\n');
const leaf = (line: string) => ({ line, below: [] });

test("writes FRR's output unchanged", () => {
  expect(textOf(readBlocks(TEXT))).toBe(bare(TEXT));
});

test('gives a line the place below its block', () => {
  const blocks = readBlocks(TEXT);
  expect(placesOf(blocks)).toContainEqual(['router bgp 64512', 'address-family ipv4 unicast', 'network 10.0.0.0/8']);
  expect(hasPlace(blocks, ['router bgp 64512', 'network 10.0.0.0/8'])).toBe(false);
  expect(hasPlace(blocks, ['router bgp 64512', 'neighbor a remote-as 1'])).toBe(true);
});

test('adds lines at their places, and none twice', () => {
  const lines = [
    {
      line: 'router bgp 64512',
      below: [
        leaf('neighbor a remote-as 1'),
        leaf('neighbor b remote-as 2'),
        { line: 'address-family ipv6 unicast', below: [leaf('network 2001:db8::/32')] },
      ],
    },
    leaf('ip route 10.0.0.0/8 blackhole'),
  ];
  const merged = withLines(readBlocks(TEXT), lines);
  expect(textOf(merged)).toBe(
    bare(TEXT).replace(
      'exit\nend',
      ' neighbor b remote-as 2\n address-family ipv6 unicast\n  network 2001:db8::/32\n exit-address-family\nexit\nend',
    ),
  );
  expect(textOf(withLines(merged, lines))).toBe(textOf(merged));
  const added = placesOf(lines).filter((place) => !hasPlace(readBlocks(TEXT), place));
  expect(textOf(without(merged, added))).toBe(bare(TEXT));
});

test('keeps a block that contains lines of others', () => {
  const places = [['vrf red'], ['router bgp 64512'], ['router bgp 64512', 'neighbor a remote-as 1']];
  expect(placesOf(without(readBlocks(TEXT), places)).map((place) => place.join(' / '))).toEqual([
    'frr version 8.4.4',
    'hostname vm',
    'ip route 10.0.0.0/8 blackhole',
    'vrf red',
    'vrf red / vni 100',
    'router bgp 64512',
    'router bgp 64512 / address-family ipv4 unicast',
    'router bgp 64512 / address-family ipv4 unicast / network 10.0.0.0/8',
  ]);
});
