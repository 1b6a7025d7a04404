/** Links to folders on a node, each with the folder that it leads to, without links. */
export type PathAliases = ReadonlyMap<string, string>;

/** What a node announces that cannot read extended attributes. */
export const LACKS_XATTRS = 'lacks:xattrs';

const ALIAS = /^path:(\/[^=]+)=(\/.+)$/;

/** As capabilities, such as `path:/bin=/usr/bin`. */
export const aliasWords = (aliases: PathAliases): readonly string[] =>
  [...aliases].map(([link, real]) => `path:${link}=${real}`);

/** The other way round: the links that a node announced among its capabilities. */
export const aliasesOf = (capabilities: readonly string[]): PathAliases =>
  new Map(
    capabilities.flatMap((word) => {
      const [, link, real] = ALIAS.exec(word) ?? [];
      return link === undefined || real === undefined ? [] : [[link, real] as const];
    }),
  );

/**
 * Where a path leads on the node, as far as its aliases tell. `follow`: also a link at the end of the path is followed.
 * What is left of a path behind one link may use another one. It ends whatever a node announces.
 */
export function throughAliases(path: string, aliases: PathAliases, follow = false): string {
  let known = path;
  for (let links = 0; links < aliases.size; links++) {
    const next = throughOne(known, aliases, follow);
    if (next === undefined) break;
    known = next;
  }
  return known;
}

function throughOne(path: string, aliases: PathAliases, follow: boolean): string | undefined {
  for (let end = path.indexOf('/', 1); end > 0; end = path.indexOf('/', end + 1)) {
    const real = aliases.get(path.slice(0, end));
    if (real !== undefined) return real + path.slice(end);
  }
  return follow ? aliases.get(path) : undefined;
}
