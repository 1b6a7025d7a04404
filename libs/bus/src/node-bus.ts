import type { LeaseView, NodeAlive, NodePace, NodeReport, StatusView } from '#libs/contracts';

/** What came for a node; nothing of it: a hint to read. */
export interface Pushed {
  readonly lease?: LeaseView;
  readonly status?: StatusView;
  readonly pace?: NodePace;
}

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
  /** Calls back when the lease or the status of the node was written, as a hint to read; also after a reconnect, and when the inventory asks for another pace. */
  onPush(listener: (pushed: Pushed) => void): void;
  readonly connected: boolean;
  close(): Promise<void>;
}
