/** Passes the log entries of a thread to the log of the process. */
import type { Log } from '../../gateway/ports.ts'

/** A log entry: the level and the arguments of a function of `Log`. */
export type LogEntry = readonly [level: keyof Log, ...Parameters<Log['info']>]

/**
 * Creates the log of a thread.
 * @param send passes an entry to the other thread, as `postMessage` copies it.
 * @param added fields that are added to each entry.
 */
export function createThreadLog(
  send: (entry: LogEntry) => void,
  added: Readonly<Record<string, unknown>>,
): Log {
  const writer =
    (level: keyof Log): Log['info'] =>
    (fields, message) =>
      send([level, { ...fields, ...added }, message])
  return {
    debug: writer('debug'),
    info: writer('info'),
    warn: writer('warn'),
    error: writer('error'),
  }
}
/** Writes an entry of a thread to the log of the process. */
export const writeEntry = (log: Log, [level, fields, message]: LogEntry): void =>
  log[level](fields, message)
