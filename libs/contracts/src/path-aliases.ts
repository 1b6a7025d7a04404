/** Links to folders on a node, each with its target, without links. */
export type PathAliases = ReadonlyMap<string, string>;

/** The capability of a node that cannot read extended attributes. */
export const LACKS_XATTRS = 'lacks:xattrs';

const ALIAS = /^path:(\/[^=]+)=(\/.+)$/;

/** As capabilities, such as `path:/bin=/usr/bin`. */
export const aliasWords = (aliases: PathAliases): readonly string[] =>
  [...aliases].map(([link, real]) => `path:${link}=${real}`);

/** The reverse: the links among the capabilities that a node announced. */
export const aliasesOf = (capabilities: readonly string[]): PathAliases =>
  new Map(
    capabilities.flatMap((word) => {
      const [, link, real] = ALIAS.exec(word) ?? [];
      return link === undefined || real === undefined ? [] : [[link, real] as const];
    }),
  );

/**
 * The real path on the node, as far as its aliases are known. `follow`: also a link at the end of the path is followed.
 * The rest of a path after one link may contain another. It terminates, whatever a node announces.
 */
export function throughAliases(path: string, aliases: PathAliases, follow = false): string {
  let target = path;
  for (let links = 0; links < aliases.size; links++) {
    const next = throughOne(target, aliases, follow);
    if (next === undefined) break;
    target = next;
  }
  return target;
}

function throughOne(path: string, aliases: PathAliases, follow: boolean): string | undefined {
  for (let end = path.indexOf('/', 1); end > 0; end = path.indexOf('/', end + 1)) {
    const real = aliases.get(path.slice(0, end));
    if (real !== undefined) return real + path.slice(end);
  }
  return follow ? aliases.get(path) : undefined;
}
