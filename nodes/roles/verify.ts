/** Verifies journals (`storage/verify.ts`) over NATS, on nodes with the role `shards`. */
import type { Host } from '../host/host.ts'
import type { Clock, Journal } from '../host/ports.ts'
import { scanJournal } from '../nats/journal/scan.ts'
import type { Nats } from '../nats/server/connect.ts'
import { startVerifying, type Verification, type VerifyParts } from '../storage/verify.ts'

/** Starts the verification. A journal is verified by the owner of its partition's first shard. */
export const verifyJournals = (
  nats: Nats,
  host: Pick<Host, 'owned'>,
  journal: Journal,
  clock: Clock,
  { partitions, metrics }: Pick<VerifyParts, 'partitions' | 'metrics'>,
): Verification =>
  startVerifying({
    partitions,
    journal,
    clock,
    log: nats.log,
    metrics,
    begin: Math.random(),
    owns: (partition) => host.owned().includes(`${partition}.0`),
    scan: (partition, from, to) => scanJournal(nats, partition, from, to),
  })
