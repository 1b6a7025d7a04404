/** A link of the kernel, with what it should have; what is left out is not looked at. */
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
  /** Segments in one packet that is handed down: 1 switches segmentation off. */
  readonly gsoMaxSegs?: number;
  /** Below `net.ipv4.conf.NAME` and `net.ipv6.conf.NAME`, as `ipv4/arp_accept`. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** An address on a link. */
export interface LinkAddress {
  readonly link: string;
  /** Address and length of its network. */
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

/** What is looked up in a table before the main one. */
export interface LookupRule {
  readonly family: 4 | 6;
  readonly priority: number;
  readonly table: number;
  readonly from?: string;
  readonly to?: string;
  readonly iif?: string;
}

/** A line of FRR's configuration with what stands below it. `@` is the AS of the node's own BGP. */
export interface FrrLine {
  readonly line: string;
  readonly below: readonly FrrLine[];
}

/** All that FRR should have for this node's network. */
export interface FrrPart {
  readonly lines: readonly FrrLine[];
  /** The AS of the node's own BGP where FRR has none yet. */
  readonly ownAs?: number;
}

/** The whole of what a node's network should have: the same fragments give the same, in whatever order they come. */
export interface Network {
  readonly links: readonly Link[];
  readonly addresses: readonly LinkAddress[];
  readonly routes: readonly Route[];
  readonly rules: readonly LookupRule[];
  readonly frr: FrrPart | undefined;
}
