import type { V1Secret } from '@kubernetes/client-node';
import type { KubeConnection } from './connection.js';
import { followTable, type ObjectTable, type TableOptions } from './object-table.js';

export interface KubeSecret {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly labels: Readonly<Record<string, string>>;
  /** When it was created, as RFC 3339. */
  readonly created: string;
  /** Decoded, as text. */
  readonly data: Readonly<Record<string, string>>;
}

export function secretOf({ metadata, data = {} }: V1Secret): KubeSecret {
  return {
    namespace: metadata?.namespace ?? '',
    name: metadata?.name ?? '',
    uid: metadata?.uid ?? '',
    labels: metadata?.labels ?? {},
    // The API server sends texts.
    created: (metadata?.creationTimestamp as unknown as string | undefined) ?? '',
    data: Object.fromEntries(
      Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'base64').toString('utf8')]),
    ),
  };
}

type Following = Pick<TableOptions<V1Secret, KubeSecret>, 'onChange' | 'logger'>;

/** Follows one Secret. That needs a right on this Secret only. */
export function followSecret(
  connection: KubeConnection,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  more: Following,
): ObjectTable<KubeSecret> {
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/secrets`;
  const query = `fieldSelector=${encodeURIComponent(`metadata.name=${name}`)}`;
  return followTable(connection, { path, query, pick: secretOf, ...more });
}
