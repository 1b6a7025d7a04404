import type { ConfigEntry } from '#libs/contracts';

/** A capability that an entry needs in addition to that of its kind, and the field that requires it. */
export interface NetworkNeed {
  readonly capability: string;
  readonly field: string;
}

const VRF_NEEDS: Readonly<Record<string, readonly string[]>> = {
  vni: ['link:bridge', 'link:vxlan', 'frr'],
  import: ['frr'],
  export: ['frr'],
  aggregate: ['frr'],
  loopbacks: ['link:dummy'],
};
const LAYER2_NEEDS: Readonly<Record<string, readonly string[]>> = {
  vni: ['link:vxlan'],
  trunk: ['link:vlan'],
  createMacvlanInterface: ['link:veth'],
};

/** The capabilities of the kernel or the tools that a network entry needs. */
export function networkNeeds({ kind, spec }: ConfigEntry): readonly NetworkNeed[] {
  const table = kind === 'Vrf' ? VRF_NEEDS : kind === 'Layer2Network' ? LAYER2_NEEDS : {};
  return Object.entries(table).flatMap(([field, capabilities]) =>
    isUsed(spec[field]) ? capabilities.map((capability) => ({ capability, field: `spec.${field}` })) : [],
  );
}

const isUsed = (value: unknown): boolean =>
  value !== undefined && value !== false && !(Array.isArray(value) && value.length === 0);
