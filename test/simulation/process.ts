/** A child process that runs assigned seeds, for a campaign on several cores. */
import { simulate } from './run.ts'

process.on(
  'message',
  (asked: Parameters<typeof simulate>[0]) =>
    void simulate(asked).then((report) => process.send?.(report)),
)
// The parent process has ended, so nothing would read the results.
process.once('disconnect', () => process.exit(0))
