/** A manifest, as people write it. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: Readonly<Record<string, unknown>>;
}

export const manifest = (kind: string, name: string, spec: Readonly<Record<string, unknown>>): Manifest => ({
  apiVersion: 'sluice.dev/v1alpha1',
  kind,
  metadata: { name },
  spec,
});

/** Selects every node without a role. */
export const selecting = (role?: string): object => (role === undefined ? {} : { matchLabels: { role } });

/** A file in /etc, named as the fragment is. */
export const file = (name: string, content: string, role?: string): Manifest =>
  manifest('File', name, { nodeSelector: selecting(role), path: `/etc/${name}.conf`, content });

export const pool = (role: string, maxUnavailable: number | string, more: object = {}): Manifest =>
  manifest('Pool', role, { nodeSelector: selecting(role), maxUnavailable, applyTimeout: '60s', ...more });

/** A probe of every node that the test answers. */
export const health = (url: string, timeout = '40s'): Manifest =>
  manifest('Probe', 'health', { nodeSelector: {}, http: { url }, timeout, retries: 0 });
