import { About, Fields } from '../shape/description.js';
import { ADDRESS, NETWORK } from '../address.js';
import { AtLeastOne, NestedList, Optional, Ruled, type Problem } from '../shape/checked.js';
import { Exactly, Text, Whole } from '../shape/forms.js';
import { INTERFACE } from './interface-name.js';
import { NodeSpec, type Kind } from './kind.js';

const MAX_TABLE = 4_294_967_295;
/** The tables of the kernel: default, main and local. */
const KERNEL_TABLES = [253, 254, 255];

/** A route in the table. */
@Ruled({
  problems: (route) => wayProblems(route),
  schema: {
    oneOf: [
      { required: ['blackhole'], properties: { via: false, interface: false } },
      { anyOf: [{ required: ['via'] }, { required: ['interface'] }], properties: { blackhole: false } },
    ],
  },
  expressions: [
    {
      rule: '(has(self.via) || has(self.interface)) != has(self.blackhole)',
      message: 'either via or interface, or blackhole, is needed',
    },
  ],
})
@Fields({
  to: 'Destination network, such as `10.0.0.0/8` or `0.0.0.0/0`.',
  via: 'Address of the next hop.',
  interface: 'Interface through which the traffic leaves.',
  blackhole: '`true`: traffic to this destination is dropped. Cannot be used with `via` or `interface`.',
})
export class TableRoute {
  @Text(NETWORK) readonly to!: string;
  @Optional() @Text(ADDRESS) readonly via?: string;
  @Optional() @Text(INTERFACE) readonly interface?: string;
  @Optional() @Exactly(true, 'wrong-type') readonly blackhole?: true;
}

/** A rule that selects the traffic that uses the table. */
@AtLeastOne(
  ['from', 'to', 'interface'],
  'at least one of from, to, interface is needed: a rule without any of them would redirect all traffic',
)
@Fields({
  priority: 'Position among all rules of the node, from 1 to 32,765. Lower numbers are tried first.',
  from: 'Source network of the traffic.',
  to: 'Destination network of the traffic.',
  interface: 'Interface on which the traffic arrives.',
})
export class TableRule {
  /** Before the kernel's rule for its main table, and after the one for its local table. */
  @Whole(1, 32_765) readonly priority!: number;
  @Optional() @Text(NETWORK) readonly from?: string;
  @Optional() @Text(NETWORK) readonly to?: string;
  @Optional() @Text(INTERFACE) readonly interface?: string;
}

/** An additional routing table of the node: its routes, and the rules that use it. */
@Ruled({
  problems: ({ tableId }) =>
    KERNEL_TABLES.includes(tableId as number)
      ? [{ at: 'tableId', code: 'reserved', message: `${String(tableId)} is a table of the kernel` }]
      : [],
  schema: { properties: { tableId: { not: { enum: KERNEL_TABLES } } } },
  expressions: [
    {
      rule: `!(self.tableId in [${KERNEL_TABLES.join(', ')}])`,
      message: 'is a table of the kernel',
      fieldPath: '.tableId',
    },
  ],
})
@About('A routing table with its routes, and rules that say which traffic uses it.')
@Fields({
  tableId: 'Number of the table. 253, 254 and 255 belong to the kernel.',
  routes: 'Routes in the table.',
  rules: 'Which traffic is looked up in the table. Each rule needs `from`, `to` or `interface`.',
})
export class RoutingTableSpec extends NodeSpec {
  @Whole(1, MAX_TABLE) readonly tableId!: number;
  @Optional() @NestedList(() => TableRoute) readonly routes?: readonly TableRoute[];
  @Optional() @NestedList(() => TableRule) readonly rules?: readonly TableRule[];
}

export const routingTable: Kind = { name: 'RoutingTable', spec: RoutingTableSpec, role: 'state' };

function wayProblems(route: Readonly<Record<string, unknown>>): readonly Problem[] {
  const hasWay = route['via'] !== undefined || route['interface'] !== undefined;
  if (hasWay !== (route['blackhole'] !== undefined)) return [];
  return [
    {
      at: '',
      code: 'exactly-one',
      message: hasWay
        ? 'a blackhole drops the traffic: it takes neither via nor interface'
        : 'via, interface or blackhole is needed',
    },
  ];
}
