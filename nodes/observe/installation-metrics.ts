/** The metrics of the state of the installation, as seen by one node: views, nodes and storage. */
import type { Instruments } from './instruments.ts'

export interface InstallationMeasure {
  /** Sets the number of journal messages that a view has not applied yet. */
  viewLag(partition: number, messages: number): void
  /** Counts a failure to apply the journal to a view. */
  viewAlarm(partition: number): void
  /** Counts a reconnection to NATS. */
  reconnected(): void
  /**
   * Sets the state of the installation as seen by this node: the number of live nodes per role,
   * whether this node is connected to NATS, and whether its own lease is fresh.
   */
  standing(nodes: Readonly<Record<string, number>>, connected: boolean, fresh: boolean): void
  /** Sets the number of bytes in use, and the limit at which writes stop. */
  storage(used: number, limit: number): void
  /** Sets, for each reason, whether this node currently refuses writes for it. */
  writesStopped(reasons: Readonly<Record<string, boolean>>): void
  /** Sets whether a journal that this node verifies has entries that cannot be read. */
  journalDamaged(partition: number, damaged: boolean): void
}

/** @param version the release of this node. */
export function createInstallationMetrics(
  { counter, gauge }: Instruments,
  version: string,
): InstallationMeasure {
  gauge('info', 'Release of this node, in the label; the value is always 1', 'version').set(
    { version },
    1,
  )
  const lag = gauge(
    'view_lag_messages',
    'Journal messages that a view has not applied yet',
    'partition',
  )
  const alarms = counter('view_alarms', 'Failures to apply the journal to a view', 'partition')
  const reconnects = counter('nats_reconnects', 'Reconnections to NATS')
  const nodes = gauge(
    'nodes_live',
    'Live nodes of the installation as seen by this node, by role',
    'role',
  )
  const states = {
    connected: gauge('nats_connected', 'Whether this node is connected to NATS (1 or 0)'),
    fresh: gauge(
      'membership_fresh',
      "Whether this node's lease is fresh (1 or 0); its gateway answers 503 while it is 0",
    ),
  }
  const storage = {
    used: gauge('storage_used_bytes', 'Bytes used on the storage of the journal'),
    limit: gauge('storage_limit_bytes', 'Limit in bytes at which writes stop'),
  }
  const damage = gauge(
    'journal_damaged',
    'Whether the daily verification found unreadable entries in a journal (1 or 0)',
    'partition',
  )
  const stopped = gauge(
    'writes_stopped',
    'Whether writes are rejected (1 or 0), by reason',
    'reason',
  )
  return {
    viewLag: (partition, messages) => lag.set({ partition }, messages),
    viewAlarm: (partition) => alarms.inc({ partition }),
    reconnected: () => reconnects.inc(),
    standing: (live, connected, fresh) => {
      for (const [role, number] of Object.entries(live)) nodes.set({ role }, number)
      states.connected.set(connected ? 1 : 0)
      states.fresh.set(fresh ? 1 : 0)
    },
    storage: (used, limit) => {
      storage.used.set(used)
      storage.limit.set(limit)
    },
    writesStopped: (reasons) => {
      for (const [reason, now] of Object.entries(reasons)) stopped.set({ reason }, now ? 1 : 0)
    },
    journalDamaged: (partition, damaged) =>
      damage.set({ partition: String(partition) }, damaged ? 1 : 0),
  }
}
