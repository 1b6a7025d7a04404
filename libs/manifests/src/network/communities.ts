/** Communities that FRR knows by name. FRR shows the name, however they were written. */
const WORDS: Readonly<Record<string, number>> = {
  internet: 0,
  'graceful-shutdown': 0xffff0000,
  'accept-own': 0xffff0001,
  'route-filter-translated-v4': 0xffff0002,
  'route-filter-v4': 0xffff0003,
  'route-filter-translated-v6': 0xffff0004,
  'route-filter-v6': 0xffff0005,
  'llgr-stale': 0xffff0006,
  'no-llgr': 0xffff0007,
  'accept-own-nexthop': 0xffff0008,
  blackhole: 0xffff029a,
  'no-export': 0xffffff01,
  'no-advertise': 0xffffff02,
  'local-AS': 0xffffff03,
  'no-peer': 0xffffff04,
};
const BY_VALUE: ReadonlyMap<number, string> = new Map(Object.entries(WORDS).map(([word, value]) => [value, word]));

/** The communities as FRR shows them: sorted by number, each once. */
export function shownCommunities(texts: readonly string[]): readonly string[] {
  const values = [...new Set(texts.map(valueOf))].sort((a, b) => a - b);
  return values.map((value) => BY_VALUE.get(value) ?? `${Math.floor(value / 65_536)}:${value % 65_536}`);
}

function valueOf(text: string): number {
  const [high, low] = text.split(':').map(Number);
  return WORDS[text] ?? (high ?? 0) * 65_536 + (low ?? 0);
}
