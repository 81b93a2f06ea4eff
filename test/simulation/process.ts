/** A process that runs the seeds that it is told, for a campaign on several cores. */
import { simulate } from './run.ts'

process.on(
  'message',
  (asked: Parameters<typeof simulate>[0]) =>
    void simulate(asked).then((report) => process.send?.(report)),
)
// Whoever started this process is gone, so nobody would end it.
process.once('disconnect', () => process.exit(0))
