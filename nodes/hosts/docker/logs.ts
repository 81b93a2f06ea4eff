/** Reads the logs of a container: its output, its history, and the log file of the worker. */
import { BLOCK, decodeHeader } from '../../backup/tar.ts'
import type { LogRequest } from '../provider.ts'
import { createTail } from '../tail.ts'
import { folders, type Labels, label } from './container.ts'
import { type Engine, parseResponse } from './engine.ts'
import { createOutputDecoder } from './output.ts'

type Bounds = Pick<LogRequest, 'tail' | 'max_bytes'>
type Log = { readonly content: string; readonly truncated: boolean }

/** Maximum size in bytes of a worker's log file that is read. */
const MAX_FILE_BYTES = 32 * 1024 * 1024

/**
 * Reads the end of a log of a running or ended container. The `bootstrap` log is composed from the
 * container's state in the engine.
 * @throws ProviderFault when the engine does not respond, or responds with an error.
 */
export function readLog(
  engine: Engine,
  container: string,
  name: LogRequest['log_name'],
  bounds: Bounds,
): Promise<Log> {
  if (name === 'worker') return readFile(engine, container, bounds)
  if (name === 'bootstrap') return readHistory(engine, container, bounds)
  return readOutput(engine, container, name, bounds)
}

async function readOutput(
  engine: Engine,
  container: string,
  stream: 'stdout' | 'stderr',
  { tail, max_bytes }: Bounds,
): Promise<Log> {
  const kept = createTail(tail, max_bytes)
  // One line more than needed is requested, to find out whether the log is longer.
  const query = { [stream]: 'true', tail: String(tail + 1) }
  const decode = createOutputDecoder(kept.add)
  await engine.stream('GET', `/containers/${container}/logs`, decode, { query, accepts: [404] })
  return kept.end()
}

/** Reads the worker's log file, which the engine sends as the only file of a tar archive. */
async function readFile(engine: Engine, container: string, bounds: Bounds): Promise<Log> {
  const kept = createTail(bounds.tail, bounds.max_bytes)
  let head = Buffer.alloc(0)
  let left: number | undefined
  let tooLarge = false
  const onData = (part: Buffer): boolean => {
    let rest = part
    if (left === undefined) {
      head = Buffer.concat([head, part])
      if (head.length < BLOCK) return true
      const entry = decodeHeader(head.subarray(0, BLOCK))
      rest = head.subarray(BLOCK)
      // The log is empty if a program in the environment has replaced the file with a link or a
      // folder.
      left = entry && entry !== 'end' && entry.file ? entry.size : 0
      tooLarge = left > MAX_FILE_BYTES
      if (tooLarge) return false
    }
    const content = rest.subarray(0, left)
    left -= content.length
    kept.add(content)
    return left > 0
  }
  await engine.stream('GET', `/containers/${container}/archive`, onData, {
    query: { path: `${folders.logs}/worker.log` },
    accepts: [404],
  })
  return tooLarge
    ? { content: `[the log is larger than ${MAX_FILE_BYTES} bytes]\n`, truncated: true }
    : kept.end()
}

async function readHistory(engine: Engine, container: string, bounds: Bounds): Promise<Log> {
  interface Described {
    readonly Id: string
    readonly Created: string
    readonly Config: { readonly Image: string; readonly Labels: Labels }
    readonly State: {
      readonly Running: boolean
      readonly StartedAt: string
      readonly FinishedAt: string
      readonly ExitCode: number
      readonly OOMKilled?: boolean
      readonly Error?: string
    }
  }
  const found = await engine.call('GET', `/containers/${container}/json`, { accepts: [404] })
  if (found.status === 404) return { content: '', truncated: false }
  const { Id, Created, Config, State } = parseResponse<Described>(found)
  const end = [
    `exit code ${State.ExitCode}`,
    ...(State.OOMKilled ? ['memory limit exceeded'] : []),
    ...(State.Error ? [State.Error] : []),
  ]
  const lines = [
    `${Created} container ${Id.slice(0, 12)} created from ${Config.Image}`,
    `${State.StartedAt} worker ${Config.Labels[label.generation]} started`,
    ...(State.Running ? [] : [`${State.FinishedAt} worker ended: ${end.join(', ')}`]),
  ]
  const kept = createTail(bounds.tail, bounds.max_bytes)
  kept.add(Buffer.from(`${lines.join('\n')}\n`))
  return kept.end()
}
