import type { LeaseView, NodeAlive, NodeReport, StatusView } from '#libs/contracts';

/** What an applier needs of the bus: its own keys and its own subjects, nothing else. Reads may throw when there is no connection. */
export interface NodeBus {
  /** The node's lease, read from the stream's leader; undefined when it never had one. */
  lease(): Promise<LeaseView | undefined>;
  /** What the scheduler has taken of this node's reports, from the stream's leader. */
  status(): Promise<StatusView | undefined>;
  /** The text of the config with this hash (bucket `configs`, key `<node>.<hash>`); undefined when there is none. */
  config(hash: string): Promise<string | undefined>;
  /** Stores a report in REPORTS; resolves when the server has it. */
  report(report: NodeReport): Promise<void>;
  /** Heartbeat: core NATS, dropped silently without a connection. */
  alive(alive: NodeAlive): void;
  /** Calls back when the lease or the status of the node was written, as a hint to read; also after a reconnect. */
  onPush(listener: (pushed: { readonly lease?: LeaseView; readonly status?: StatusView }) => void): void;
  readonly connected: boolean;
  close(): Promise<void>;
}
