import { readFile } from 'node:fs/promises';
import { NetworkTools } from '../backends/network/tools.js';
import { connected, type ProbeType } from './probe-types.js';

/** A port on which nothing listens. A router that refuses the connection was reached. */
const DISCARD_PORT = 9;
const DNS_PORT = 53;

/**
 * Whether the node can reach something: `reach {addresses: [host:port]}` any of these, `{gateway: true}` its default
 * gateway, `{nameserver: true}` its name server. A refused connection counts as reached. The applier adds this probe
 * itself; no fragment can use it.
 */
export const reachProbe: ProbeType = {
  field: 'reach',
  check: () => undefined,
  tryOnce: async (spec, _surroundings, timeoutMs) => {
    const targets = await targetsOf(spec);
    if (targets.length === 0)
      return spec['gateway'] === true ? 'there is no default gateway' : 'there is no address to connect to';
    const reasons = await Promise.all(targets.map(({ host, port }) => reached(host, port, timeoutMs)));
    return reasons.includes(undefined) ? undefined : reasons.join('; ');
  },
};

interface Target {
  readonly host: string;
  readonly port: number;
}

async function targetsOf(spec: Readonly<Record<string, unknown>>): Promise<readonly Target[]> {
  if (spec['gateway'] === true) return (await gateways()).map((host) => ({ host, port: DISCARD_PORT }));
  if (spec['nameserver'] === true) return (await nameservers()).map((host) => ({ host, port: DNS_PORT }));
  return (spec['addresses'] as readonly string[]).map((text) => {
    const colon = text.lastIndexOf(':');
    return { host: text.slice(0, colon).replace(/^\[|\]$/g, ''), port: Number(text.slice(colon + 1)) };
  });
}

async function gateways(): Promise<readonly string[]> {
  const tools = new NetworkTools({});
  const routes = (
    await Promise.all(['-4', '-6'].map((family) => tools.list(family, 'route', 'show', 'default').catch(() => [])))
  ).flat();
  return routes
    .flatMap(({ gateway, dev }) =>
      typeof gateway === 'string' ? [gateway.startsWith('fe80:') ? `${gateway}%${String(dev)}` : gateway] : [],
    )
    .slice(0, 2);
}

async function nameservers(): Promise<readonly string[]> {
  const text = await readFile('/etc/resolv.conf', 'utf8').catch(() => '');
  return [...text.matchAll(/^nameserver\s+(\S+)/gm)].map(([, host]) => host ?? '').slice(0, 3);
}

/** Undefined if the host answers; a refused connection counts as an answer. Otherwise why it cannot be reached. */
const reached = (host: string, port: number, timeoutMs: number): Promise<string | undefined> =>
  connected({ host, port }, timeoutMs, `no answer from ${host}`, ({ code, message }) =>
    code === 'ECONNREFUSED' || code === 'ECONNRESET' ? undefined : `${host} cannot be reached (${code ?? message})`,
  );
