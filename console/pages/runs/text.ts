/** Texts that all pages of runs use. */
import { messages } from '../../text/messages.ts'

export const runsText = messages('runs', {
  runs: 'Runs',
  run: 'Run',
  queued: 'Queued',
  pending: 'Not started',
  running: 'Running',
  claimed: 'In progress',
  suspended: 'Waiting',
  completed: 'Completed',
  failed: 'Failed',
  cancelled: 'Cancelled',
  skipped: 'Skipped',
  inline: 'Inline definition',
  version: (version: number) => `version ${version}`,
})
