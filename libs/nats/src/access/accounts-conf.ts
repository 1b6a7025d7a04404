import { crossings, nodeAccess, type Access } from './node-access.js';

/** How a user proves who it is: with the public part of an nkey, or with a password. */
export type Login = { readonly nkey: string } | { readonly user: string; readonly password: string };

export interface AccountUsers {
  /** The services, and people. */
  readonly control: readonly Login[];
  /** One user for each node. */
  readonly nodes: readonly { readonly node: string; readonly login: Login }[];
}

/**
 * The accounts of a nats-server in its config format. CONTROL has JetStream and the services. NODES has no JetStream:
 * its users reach only what is imported, and each of them only the subjects of its own node. So a node cannot write
 * into a stream with a reply subject, or create a consumer that delivers to other nodes.
 */
export function accountsConf({ control, nodes }: AccountUsers): string {
  const { toServices, fromNodes, toNodes, requestsToNodes } = crossings();
  const from = (account: string, subject: string) => ({ account, subject });
  const accounts = {
    CONTROL: {
      jetstream: 'enabled',
      users: control,
      exports: [...toServices.map((service) => ({ service })), ...toNodes.map((stream) => ({ stream }))],
      imports: [
        ...fromNodes.map((subject) => ({ stream: from('NODES', subject) })),
        ...requestsToNodes.map((subject) => ({ service: from('NODES', subject) })),
      ],
    },
    NODES: {
      users: nodes.map(({ node, login }) => ({ ...login, permissions: permissionsOf(nodeAccess(node)) })),
      exports: [...fromNodes.map((stream) => ({ stream })), ...requestsToNodes.map((service) => ({ service }))],
      imports: [
        ...toServices.map((subject) => ({ service: from('CONTROL', subject) })),
        ...toNodes.map((subject) => ({ stream: from('CONTROL', subject) })),
      ],
    },
  };
  // A server reads JSON, too.
  return `accounts: ${JSON.stringify(accounts, undefined, 2)}\n`;
}

const permissionsOf = ({ publish, subscribe, responses }: Access) => ({
  publish: { allow: publish },
  subscribe: { allow: subscribe },
  ...(responses ? { allow_responses: true } : {}),
});
