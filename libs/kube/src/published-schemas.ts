import type { KubeConnection } from './connection.js';

/** What an API server says of the kinds of a group and version; `version` tells whether it is what was read before. */
export interface PublishedSchemas {
  /** The versions of the group that there are. */
  readonly versions: readonly string[];
  readonly version: string;
  /** The OpenAPI document; undefined where that version is not there, or is the one that was read before. */
  readonly document: unknown;
}

/** Reads the schemas of a group and version, unless they are those of `before`. Everybody who is known to the API server may. */
export async function readSchemas(
  connection: KubeConnection,
  group: string,
  version: string,
  before: string,
): Promise<PublishedSchemas> {
  const { paths = {} } = (await connection.get('/openapi/v3')) as {
    readonly paths?: Readonly<Record<string, { readonly serverRelativeURL: string }>>;
  };
  const prefix = `apis/${group}/`;
  const versions = Object.keys(paths)
    .filter((path) => path.startsWith(prefix))
    .map((path) => path.slice(prefix.length));
  // The address has the digest of the document in it.
  const url = paths[`${prefix}${version}`]?.serverRelativeURL ?? '';
  return { versions, version: url, document: url === '' || url === before ? undefined : await connection.get(url) };
}
