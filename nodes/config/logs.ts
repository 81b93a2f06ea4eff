/** The settings of the log lines of jobs. */
import { jobLogLimits } from '../../gateway/logs/writers.ts'
import type { LogRetention } from '../nats/logs/stream.ts'
import { bytes, duration, integer } from './parse.ts'
import { setting, type ValuesOf } from './setting.ts'

export const logTable = {
  BATON_LOGS_AGE: setting(
    '168h',
    duration(1000, 60, 31_536_000),
    'Time for which log lines of jobs are stored, in seconds or as a duration; the same on all nodes',
  ),
  BATON_LOGS_MAX: setting(
    '1GiB',
    bytes,
    'Maximum size of the stored log lines of all jobs; the oldest are deleted first. The same on all nodes',
  ),
  BATON_LOGS_PER_RUN: setting(
    '20000',
    integer(1, 10_000_000),
    'Maximum number of stored batches of log lines of one run; the oldest are deleted first. ' +
      'A batch has up to 1000 lines. The same on all nodes',
  ),
  BATON_LOGS_JOB_MAX: setting(
    `${jobLogLimits.bytes / 2 ** 20}MiB`,
    bytes,
    'Maximum size of the log lines of one attempt of a job; further lines are dropped',
  ),
  BATON_LOGS_JOB_RATE: setting(
    String(jobLogLimits.rate),
    integer(1, 1_000_000),
    'Maximum number of log lines per second of one job, on average over 10 seconds; ' +
      'further lines are dropped',
  ),
} as const

/** The configuration of log lines: limits on what is stored, and on what one job may write. */
export interface LogConfig {
  readonly stored: LogRetention
  readonly job: { readonly rate: number; readonly bytes: number }
}
/** Returns the configuration from the values of the settings. */
export const logsOf = (v: ValuesOf<typeof logTable>): LogConfig => ({
  stored: {
    age_ms: v.BATON_LOGS_AGE * 1000,
    bytes: v.BATON_LOGS_MAX,
    batches: v.BATON_LOGS_PER_RUN,
  },
  job: { rate: v.BATON_LOGS_JOB_RATE, bytes: v.BATON_LOGS_JOB_MAX },
})
