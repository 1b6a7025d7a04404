import type { ConfigEntry } from '#libs/contracts';

/** Shorter than for most probes: there are several, and a node that is cut off must be restored soon. */
const LIMITS = { timeout: '2s', retries: 2 };

/** What a node must reach to receive leases: NATS, its gateway, its name server, and what the operator adds. */
export function controlPlane(servers: readonly string[], reach: readonly string[]): readonly ConfigEntry[] {
  const addresses = servers.flatMap((server) => addressOf(server) ?? []);
  return [
    ...(addresses.length === 0 ? [] : [probe('bus', { addresses })]),
    probe('gateway', { gateway: true }),
    probe('nameserver', { nameserver: true }),
    ...reach.map((address) => probe(address, { addresses: [address] })),
  ];
}

/** No fragment can have this name. */
const nameOf = (what: string): string => `control-plane:${what}`;

/** Whether the node can reach NATS. */
export const BUS_PROBE = nameOf('bus');

const probe = (what: string, reach: object): ConfigEntry => ({
  kind: 'Probe',
  name: nameOf(what),
  spec: { reach, ...LIMITS },
});

const NATS_PORT = 4222;

function addressOf(server: string): string | undefined {
  const text = server.includes('://') ? server : `nats://${server}`;
  if (!URL.canParse(text)) return undefined;
  const { hostname, port } = new URL(text);
  return hostname === '' ? undefined : `${hostname}:${port === '' ? NATS_PORT : port}`;
}
