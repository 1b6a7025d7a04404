import { access } from 'node:fs/promises';
import { ELEMENT_KINDS, isNetworkEntry, networkEntries, type ElementKind } from '#libs/manifests/lean';
import type { Config, ConfigEntry } from '#libs/contracts';
import type { Backend } from '../../ports.js';
import { AddressBackend } from './address-backend.js';
import { FRR_RELOAD, FrrBackend } from '../frr/frr-backend.js';
import { LinkBackend } from './link-backend.js';
import { RouteBackend } from './route-backend.js';
import { RuleBackend } from './rule-backend.js';
import { NetworkTools, type NetworkSettings, type ToolResult } from './tools.js';

/** The network of the machine, as far as this applier may and can configure it. */
export interface NodeNetwork {
  readonly capabilities: readonly string[];
  readonly backends: readonly Backend[];
}

/** Kinds of links that a kernel may lack, each with a command that creates one. */
const LINK_PROBES: Readonly<Record<string, readonly string[]>> = {
  vrf: ['name', 'slprobe-vrf', 'type', 'vrf', 'table', '211'],
  bridge: ['name', 'slprobe-br', 'type', 'bridge'],
  dummy: ['name', 'slprobe-dummy', 'type', 'dummy'],
  veth: ['name', 'slprobe-veth', 'type', 'veth', 'peer', 'name', 'slprobe-peer'],
  vxlan: ['name', 'slprobe-vxlan', 'type', 'vxlan', 'id', '211', 'dstport', '4789'],
  vlan: ['link', 'lo', 'name', 'slprobe-vlan', 'type', 'vlan', 'id', '211'],
};

/** Finds out what the kernel and the tools of this machine support. */
export async function nodeNetwork(settings: NetworkSettings, stateDir: string): Promise<NodeNetwork> {
  const tools = new NetworkTools(settings);
  const [links, frr] = await Promise.all([possibleLinks(tools), hasFrr(tools)]);
  if (links.length === 0) return { capabilities: [], backends: [] };
  const can = (link: string): boolean => links.includes(link);
  const byKind: Readonly<Record<ElementKind, Backend>> = {
    NetworkLink: new LinkBackend(tools),
    NetworkAddress: new AddressBackend(tools),
    NetworkRoute: new RouteBackend(tools),
    NetworkRule: new RuleBackend(tools),
    NetworkFrr: new FrrBackend(tools, stateDir),
  };
  return {
    capabilities: [
      'kind:RoutingTable',
      ...links.map((link) => `link:${link}`),
      ...(frr ? ['frr'] : []),
      ...(can('vrf') ? ['kind:Vrf'] : []),
      ...(can('bridge') ? ['kind:Layer2Network'] : []),
      ...(can('bridge') && frr ? ['kind:BgpPeering'] : []),
    ],
    backends: ELEMENT_KINDS.map((kind) => byKind[kind]),
  };
}

/**
 * The entries to apply for a config: its own, and instead of network fragments the entries that these are merged into.
 */
export function elementsOf(config: Config): readonly ConfigEntry[] {
  if (!config.fragments.some(isNetworkEntry)) return config.fragments;
  try {
    return [...config.fragments.filter((entry) => !isNetworkEntry(entry)), ...networkEntries(config)];
  } catch {
    // An invalid network is refused when the config is checked.
    return config.fragments;
  }
}

/**
 * Whether the change from one config to the other touches the network, because they differ or because drift is
 * repaired.
 */
export function changesNetwork(from: Config, to: Config): boolean {
  const [before, after] = [from, to].map((config) => config.fragments.filter(isNetworkEntry));
  return (
    JSON.stringify(before) !== JSON.stringify(after) ||
    (after !== undefined && after.length > 0 && JSON.stringify(from) === JSON.stringify(to))
  );
}

/**
 * In a namespace that ends with the process, so that nothing on the machine sees it. In place if that is not permitted.
 */
async function possibleLinks(tools: NetworkTools): Promise<readonly string[]> {
  const apart = new NetworkTools({});
  const { code } = await apart.try(['unshare', '--net', 'true']);
  return code === 0
    ? triedLinks((words) => apart.try(['unshare', '--net', 'ip', 'link', 'add', ...words]))
    : linksTriedInPlace(tools);
}

/**
 * A hardened unit may configure its network, but create no namespace. Each link is created for a moment, and never set
 * up.
 */
export const linksTriedInPlace = (tools: NetworkTools): Promise<readonly string[]> =>
  triedLinks(async (words) => {
    const clear = () => tools.try(['ip', 'link', 'delete', 'dev', words[words.indexOf('name') + 1] ?? '']);
    await clear();
    const result = await tools.try(['ip', 'link', 'add', ...words]);
    // Also after a failure: a command that was killed may still have created it.
    await clear();
    return result;
  });

async function triedLinks(make: (words: readonly string[]) => Promise<ToolResult>): Promise<readonly string[]> {
  const tried = await Promise.all(
    Object.entries(LINK_PROBES).map(async ([link, words]) => {
      const { code, error } = await make(words);
      // The loopback interface cannot have VLANs. If the kernel says so, it supports VLANs.
      return code === 0 || (link === 'vlan' && /VLANs not supported/.test(error)) ? [link] : [];
    }),
  );
  return tried.flat();
}

async function hasFrr(tools: NetworkTools): Promise<boolean> {
  const hasReload = await access(FRR_RELOAD).then(
    () => true,
    () => false,
  );
  return hasReload && (await tools.try(['vtysh', '--help'])).code === 0;
}
