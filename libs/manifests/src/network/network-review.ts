import { reasonFor, type Config, type ConfigEntry, type Reason } from '#libs/contracts';
import { isNetworkEntry, networkFragments, type NetworkFragments } from './fragments.js';
import { networkText } from './ip-address.js';
import { layer2Links } from './layer2.js';
import { vrfLinks, vrfsOf, type Vrf } from './vrf.js';

/** Every reason why the network fragments of one node do not fit together. Invalid ones are left out. */
export function networkReasons(config: Config, holds: (entry: ConfigEntry) => boolean): readonly Reason[] {
  if (!config.fragments.some(isNetworkEntry)) return [];
  const fragments = networkFragments(config, holds);
  const { vrfs } = vrfsOf(fragments);
  const names = namesIn(config);
  return [
    ...vlanReasons(fragments),
    ...vniReasons(fragments, vrfs),
    ...gatewayReasons(fragments),
    ...tableReasons(fragments, vrfs),
    ...linkReasons(fragments, vrfs),
    ...routeReasons(fragments),
    ...vrfReasons(fragments, names),
    ...peeringReasons(fragments, names),
    ...asReasons(fragments, vrfs),
  ];
}

/** What takes effect differently than written: a part of a VRF whose field was already set by an earlier part. */
export function networkWarnings(config: Config, holds: (entry: ConfigEntry) => boolean): readonly Reason[] {
  if (!config.fragments.some(isNetworkEntry)) return [];
  return vrfsOf(networkFragments(config, holds)).overruled.map(({ part, field, by }) =>
    reason(
      part,
      `spec.${field}`,
      'overruled',
      `${by} comes first and sets ${field} of this VRF: the value here is ignored`,
    ),
  );
}

/**
 * Names to which fragments may refer, including those of invalid fragments, so that one error is not reported as two.
 */
interface Names {
  readonly vrfs: ReadonlySet<unknown>;
  readonly networks: ReadonlySet<string>;
}

const namesIn = ({ fragments }: Config): Names => ({
  vrfs: new Set(fragments.filter(({ kind }) => kind === 'Vrf').map(({ spec }) => spec['vrf'])),
  networks: new Set(fragments.filter(({ kind }) => kind === 'Layer2Network').map(({ name }) => name)),
});

interface Claim {
  readonly id: string;
  readonly field: string;
  readonly key: string;
  /** The description, after "A and B both". */
  readonly what: string;
}

/** Each claim that already has an owner. */
function twice(claims: readonly Claim[]): readonly Reason[] {
  const owners = new Map<string, string>();
  return claims.flatMap(({ id, field, key, what }) => {
    const owner = owners.get(key);
    if (owner === undefined) owners.set(key, id);
    return owner === undefined ? [] : [reason(id, field, 'conflict', `${owner} and ${id} both ${what}`)];
  });
}

/** The first of the claims to one thing. */
const once = (claims: readonly Claim[]): readonly Claim[] =>
  claims.filter(({ key }, i) => claims.findIndex((other) => other.key === key) === i);

const vlanReasons = ({ layer2 }: NetworkFragments): readonly Reason[] =>
  twice(layer2.map(({ id, spec }) => ({ id, field: 'spec.id', key: String(spec.id), what: `have VLAN ${spec.id}` })));

function vniReasons(fragments: NetworkFragments, vrfs: readonly Vrf[]): readonly Reason[] {
  const owners = [
    ...vrfs.map(({ vni, parts }) => ({ id: ownerOf(fragments, parts, 'vni'), vni })),
    ...fragments.layer2.map(({ id, spec: { vni } }) => ({ id, vni })),
  ];
  return twice(
    owners
      .filter(({ vni }) => vni !== undefined)
      .map(({ id, vni }) => ({ id, field: 'spec.vni', key: String(vni), what: `have VNI ${vni}` })),
  );
}

/** The first part that sets a field. */
const ownerOf = ({ vrfs }: NetworkFragments, parts: readonly string[], field: 'vni' | 'localAs'): string =>
  parts.find((part) => vrfs.find(({ id }) => id === part)?.spec[field] !== undefined) ?? parts[0] ?? '';

/** In one routing domain, each network is behind one link. */
const gatewayReasons = ({ layer2 }: NetworkFragments): readonly Reason[] =>
  twice(
    layer2.flatMap(({ id, spec: { vrf = '', anycastGateways = [] } }) =>
      once(
        anycastGateways.map(networkText).map((network, i) => ({
          id,
          field: `spec.anycastGateways[${i}]`,
          key: `${vrf} ${network}`,
          what: `have a gateway in ${network}`,
        })),
      ),
    ),
  );

function tableReasons({ tables }: NetworkFragments, vrfs: readonly Vrf[]): readonly Reason[] {
  return twice([
    ...tables.map(({ id, spec: { tableId } }) => ({
      id,
      field: 'spec.tableId',
      key: String(tableId),
      what: `have routing table ${tableId}`,
    })),
    ...vrfs.map(({ table, parts }) => ({
      id: parts[0] ?? '',
      field: 'spec.vrf',
      key: String(table),
      what: `have routing table ${table}, which is derived from the name of the VRF`,
    })),
  ]);
}

function linkReasons(fragments: NetworkFragments, vrfs: readonly Vrf[]): readonly Reason[] {
  const ofNetworks = fragments.layer2.flatMap(({ id, spec }) =>
    layer2Links(spec).map(({ name }) => link(id, 'spec.id', name)),
  );
  return twice([
    ...vrfs.flatMap((vrf) =>
      vrfLinks(vrf)
        .filter(({ type }) => type !== 'dummy')
        .map(({ name }) => link(vrf.parts[0] ?? '', 'spec.vrf', name)),
    ),
    ...fragments.vrfs.flatMap(({ id, spec }) =>
      (spec.loopbacks ?? []).map(({ name }, i) => link(id, `spec.loopbacks[${i}].name`, name)),
    ),
    // The same VLAN twice is reported once, not for every link that follows from it.
    ...once(ofNetworks),
  ]);
}

const link = (id: string, field: string, name: string): Claim => ({
  id,
  field,
  key: name,
  what: `create an interface ${name}`,
});

function routeReasons({ tables }: NetworkFragments): readonly Reason[] {
  return twice(
    tables.flatMap(({ id, spec }) => [
      ...(spec.routes ?? []).map(({ to }, i) => ({
        id,
        field: `spec.routes[${i}].to`,
        key: `route ${id} ${networkText(to)}`,
        what: `route ${to} in table ${spec.tableId}`,
      })),
      ...(spec.rules ?? []).map(({ priority, from, to, interface: iif }, i) => ({
        id,
        field: `spec.rules[${i}]`,
        key: `rule ${JSON.stringify([priority, from, to, iif])}`,
        what: `have the same rule of priority ${priority}`,
      })),
    ]),
  );
}

function vrfReasons({ layer2 }: NetworkFragments, { vrfs }: Names): readonly Reason[] {
  return layer2.flatMap(({ id, spec: { vrf } }) => (vrf === undefined || vrfs.has(vrf) ? [] : [missingVrf(id, vrf)]));
}

function peeringReasons({ peerings, layer2 }: NetworkFragments, { vrfs, networks }: Names): readonly Reason[] {
  const found = peerings.flatMap(({ id, spec: { network, vrf } }): Reason[] => {
    const layer = layer2.find(({ name }) => name === network);
    return [
      ...(networks.has(network)
        ? []
        : [missing(id, 'network', `Layer2Network/${network}`, `Layer2Network/${network}`)]),
      ...(layer !== undefined && (layer.spec.anycastGateways ?? []).length === 0
        ? [
            reason(
              id,
              'spec.network',
              'no-gateway',
              `Layer2Network/${network} has no gateways, so there is no network to listen in`,
            ),
          ]
        : []),
      ...(vrf === undefined || vrfs.has(vrf) ? [] : [missingVrf(id, vrf)]),
    ];
  });
  return [
    ...found,
    ...twice(
      peerings.map(({ id, spec: { network } }) => ({
        id,
        field: 'spec.network',
        key: network,
        what: `listen in Layer2Network/${network}`,
      })),
    ),
  ];
}

/** All BGP instances on a node have one AS. Otherwise no routes could be exchanged between them. */
function asReasons(fragments: NetworkFragments, vrfs: readonly Vrf[]): readonly Reason[] {
  const numbers = [
    ...vrfs.map(({ localAs, parts }) => ({ id: ownerOf(fragments, parts, 'localAs'), as: localAs })),
    ...fragments.peerings.map(({ id, spec: { localAs } }) => ({ id, as: localAs })),
  ].filter(({ as }) => as !== undefined);
  const [first] = numbers;
  return numbers.flatMap(({ id, as }) =>
    first === undefined || as === first.as
      ? []
      : [
          reason(
            id,
            'spec.localAs',
            'conflict',
            `${first.id} sets AS ${String(first.as)}, and ${id} sets ${String(as)}: a node has only one AS`,
          ),
        ],
  );
}

const missingVrf = (id: string, vrf: string): Reason => missing(id, 'vrf', `Vrf/${vrf}`, `Vrf for the VRF ${vrf}`);

const missing = (id: string, field: string, needs: string, what: string): Reason => ({
  ...reason(id, `spec.${field}`, 'missing-reference', `the node has no ${what}`),
  needs,
});

const reason = (fragment: string, field: string, code: string, message: string): Reason =>
  reasonFor({ fragment, field }, code, message);
