import { fragmentId, type ConfigEntry } from '#libs/contracts';
import { port } from './fields.js';
import type { Field, FieldRule, Fields } from './function-kind.js';

type Spec = Readonly<Record<string, unknown>>;

/** The IPv4 addresses of a host: those of its name, or itself if it is an address. */
export type AddressesOf = (host: string) => readonly string[];

/** A kind that no function knows: it is rendered into objects that functions have. */
export interface CompositeKind {
  readonly kind: string;
  /** For people. */
  readonly about: string;
  readonly post: 'doubles';
  /** As for a `FunctionKind`: each becomes objects that redirect any traffic. */
  readonly mayCutOff: true;
  /** The longest name: what is appended to it must fit too. */
  readonly maxName: number;
  readonly fields: Fields;
  readonly rules?: readonly FieldRule[];
  /** The fields with hosts, whose names are looked up. */
  readonly hosts: readonly string[];
  /** The objects, without duplicates. */
  readonly objects: (name: string, spec: Spec, addressesOf: AddressesOf) => readonly ConfigEntry[];
}

const COMPOSITE = { post: 'doubles', mayCutOff: true, maxName: 50 } as const;

const host = (about: string): Field => ({
  form: 'host',
  about: `${about} A full host name, which is looked up in the DNS, or an IPv4 address.`,
});

/** Which objects they become is what the SD-EWAN controller makes of them. */
export const COMPOSITE_KINDS: readonly CompositeKind[] = [
  {
    ...COMPOSITE,
    kind: 'CNFService',
    about: 'A port of a network function that leads to a service elsewhere. It becomes one CNFNAT.',
    hosts: ['fullname'],
    fields: {
      fullname: { ...host('The service. Of several addresses, the lowest is used.'), required: true },
      port: { ...port('Port of the service.'), required: true },
      dport: { ...port('Port of the network function.'), required: true },
    },
    objects: (name, { fullname, port: to, dport }, addressesOf) =>
      addressesOf(String(fullname))
        .slice(0, 1)
        .map((address) =>
          nat(`${name}nat`, { ...DNAT, src_dport: dport, dest_ip: address, dest_port: to, index: AFTER_FIRST }),
        ),
  },
  {
    ...COMPOSITE,
    kind: 'CNFLocalService',
    about:
      'A local service that answers instead of a remote one. It becomes one CNFNAT per address of the remote service.',
    hosts: ['localservice', 'remoteservice'],
    fields: {
      localservice: { ...host('The local service. Of several addresses, the lowest is used.'), required: true },
      localport: port('Port of the local service. Default: the port that was called.'),
      remoteservice: { ...host('The remote service, which is called.'), required: true },
      remoteport: port('Port of the remote service. Default: all ports.'),
    },
    objects: (name, { localservice, localport, remoteservice, remoteport }, addressesOf) => {
      const [local] = addressesOf(String(localservice));
      if (local === undefined) return [];
      return addressesOf(String(remoteservice)).map((remote, i) =>
        nat(`${name}nat${i}`, {
          ...DNAT,
          src_dip: remote,
          ...(remoteport === undefined ? {} : { src_dport: remoteport }),
          dest_ip: local,
          ...(localport === undefined ? {} : { dest_port: localport }),
        }),
      );
    },
  },
  {
    ...COMPOSITE,
    kind: 'CNFHubSite',
    about:
      'A site that is reached through a hub. On a hub it becomes one CNFRoute per network of the site, on a device also one CNFNAT.',
    hosts: ['site'],
    fields: {
      type: { words: ['Hub', 'Device'], required: true, about: 'What the function is.' },
      site: host('The site, by name.'),
      subnet: { form: 'network', about: 'The site, by its IPv4 network.' },
      hubip: {
        form: 'hub',
        about: 'With `Hub`: the IPv4 address of the device. The interface `vti_` and this address leads to it.',
      },
      devicepip: { form: 'address', about: 'With `Device`: its IPv4 address in the overlay, which the hub assigned.' },
    },
    rules: [
      { rule: 'needs', oneOf: ['site', 'subnet'], why: 'without them, there is nothing to reach' },
      { rule: 'needs', when: { field: 'type', is: ['Hub'] }, oneOf: ['hubip'], why: 'type Hub needs the device' },
      {
        rule: 'needs',
        when: { field: 'type', is: ['Device'] },
        oneOf: ['devicepip'],
        why: 'type Device needs its own address',
      },
    ],
    objects: (name, { type, site, subnet, hubip, devicepip }, addressesOf) => {
      const own = typeof subnet === 'string' ? [subnet] : [];
      const targets = [...new Set([...own, ...(typeof site === 'string' ? addressesOf(site) : [])])];
      const isHub = type === 'Hub';
      const way = isHub
        ? { dev: `vti_${String(hubip)}`, table: 'default' }
        : { dev: `#${String(devicepip)}`, table: 'cnf' };
      return targets.flatMap((target, i) => [
        entry('CNFRoute', `${name}route${i}`, { dst: target, ...way }),
        ...(isHub
          ? []
          : [
              nat(`${name}snat${i}`, {
                target: 'SNAT',
                dest: '#source',
                dest_ip: target,
                src_dip: String(devicepip),
                index: FIRST,
              }),
            ]),
      ]);
    },
  },
];

const DNAT = { target: 'DNAT', proto: 'tcp' } as const;
/** Positions in the chain. */
const FIRST = 1;
const AFTER_FIRST = 2;

const entry = (kind: string, name: string, spec: Spec): ConfigEntry => ({ kind, name, spec });
const nat = (name: string, spec: Spec): ConfigEntry => entry('CNFNAT', name, spec);

/** The kind of composites with that name; undefined if it is something else. */
export const compositeKindOf = (kind: string): CompositeKind | undefined => BY_NAME.get(kind);
const BY_NAME: ReadonlyMap<string, CompositeKind> = new Map(COMPOSITE_KINDS.map((kind) => [kind.kind, kind]));

/** A host name that a fragment refers to. */
export interface HostName {
  /** The field of the spec. */
  readonly field: string;
  readonly name: string;
}

/** The host names that have to be looked up before the fragment can be rendered. Accepts any spec. */
export function hostNamesIn({ kind, spec }: { readonly kind: string; readonly spec?: Spec | undefined }) {
  return (compositeKindOf(kind)?.hosts ?? []).flatMap((field): HostName[] => {
    const name = spec?.[field];
    return typeof name === 'string' && !isAddress(name) ? [{ field, name }] : [];
  });
}

/**
 * The objects that a composite becomes, in the order of configs, with its own name as their origin. A host without
 * addresses becomes nothing.
 */
export function objectsOf(
  { kind, name, spec }: ConfigEntry,
  addresses: ReadonlyMap<string, readonly string[]>,
): readonly ConfigEntry[] {
  const addressesOf: AddressesOf = (one) => (isAddress(one) ? [one] : (addresses.get(one) ?? []));
  const objects = compositeKindOf(kind)?.objects(name, spec, addressesOf) ?? [];
  return objects.map((object) => ({ ...object, origin: fragmentId({ kind, name }) }));
}

/** The form of a host says that every name has a letter in its last label. */
const isAddress = (text: string): boolean => /^[0-9.]+$/.test(text);
