/** A link of the kernel, with its desired properties. Properties that are left out are not checked. */
export interface Link {
  readonly name: string;
  readonly type: 'vrf' | 'bridge' | 'vxlan' | 'vlan' | 'veth' | 'dummy';
  readonly master?: string;
  readonly mtu?: number;
  readonly mac?: string;
  /** Of a VRF. */
  readonly table?: number;
  /** Of a VXLAN tunnel. */
  readonly vni?: number;
  readonly local?: string;
  /** Of a VLAN: its id, and the interface that carries it. */
  readonly vlan?: number;
  readonly parent?: string;
  /** Of a veth: its other end. */
  readonly peer?: string;
  /** As a port of a bridge. */
  readonly neighSuppress?: boolean;
  readonly learning?: boolean;
  /** Segments in one packet that is passed down: 1 switches segmentation off. */
  readonly gsoMaxSegs?: number;
  /** Below `net.ipv4.conf.NAME` and `net.ipv6.conf.NAME`, as `ipv4/arp_accept`. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** An address on a link. */
export interface LinkAddress {
  readonly link: string;
  /** The address, with the length of its network. */
  readonly address: string;
}

/** A route in a table of the kernel. */
export interface Route {
  readonly table: number;
  readonly to: string;
  readonly type: 'unicast' | 'blackhole' | 'unreachable';
  readonly via?: string;
  readonly dev?: string;
  readonly metric?: number;
}

/** A rule that looks up a table before the main one. */
export interface LookupRule {
  readonly family: 4 | 6;
  readonly priority: number;
  readonly table: number;
  readonly from?: string;
  readonly to?: string;
  readonly iif?: string;
}

/** A line of FRR's configuration, with the lines below it. `@` stands for the AS of the node's own BGP. */
export interface FrrLine {
  readonly line: string;
  readonly below: readonly FrrLine[];
}

/** Everything that FRR should have for this node's network. */
export interface FrrPart {
  readonly lines: readonly FrrLine[];
  /** The AS of the node's own BGP, if FRR has none yet. */
  readonly ownAs?: number;
}

/** Everything that a node's network should have. The same fragments give the same result, in any order. */
export interface Network {
  readonly links: readonly Link[];
  readonly addresses: readonly LinkAddress[];
  readonly routes: readonly Route[];
  readonly rules: readonly LookupRule[];
  readonly frr: FrrPart | undefined;
}
