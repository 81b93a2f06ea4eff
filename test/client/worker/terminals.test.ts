/**
 * The terminals of a worker: flow control of output, acknowledgement of input, and how they end.
 */
import fc from 'fast-check'
import t from 'tap'
import { Terminals, type WorkerTerminal } from '../../../client/worker/terminals.ts'
import { ByteWindow, bytesIn, terminalLimits } from '../../../protocol/workers/terminals.ts'

/** A program whose output the test supplies. */
class Program implements WorkerTerminal {
  paused = false
  closed = false
  written = ''
  print: (data: Uint8Array) => void = () => {}
  exit: (exit: { exit_code: number }) => void = () => {}
  write(data: Uint8Array) {
    this.written += Buffer.from(data).toString()
  }
  resize() {}
  pause() {
    this.paused = true
  }
  resume() {
    this.paused = false
  }
  close() {
    this.closed = true
  }
  onData(listener: (data: Uint8Array) => void) {
    this.print = listener
  }
  onExit(listener: (exit: { exit_code: number }) => void) {
    this.exit = listener
  }
}
async function stage(open?: () => Promise<WorkerTerminal>) {
  const program = new Program()
  const sent: { type: string; sequence?: number; data?: string; bytes?: number }[] = []
  const counts: number[] = []
  const terminals = new Terminals(
    open ?? (async () => program),
    (frame) => void sent.push(frame),
    (count) => void counts.push(count),
  )
  terminals.handle({ type: 'terminal.open', terminal_id: 'a', columns: 80, rows: 24 })
  await new Promise(setImmediate)
  return { program, sent, counts, terminals }
}
const data = (text: string) => Buffer.from(text).toString('base64')

t.test('output never exceeds the window, and arrives whole and in order', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.oneof(
          fc.record({ print: fc.integer({ min: 1, max: 100_000 }) }),
          fc.record({ acknowledge: fc.double({ min: 0, max: 1, noNaN: true }) }),
        ),
        { maxLength: 40 },
      ),
      async (steps) => {
        const { program, sent, terminals } = await stage()
        let printed = ''
        let acknowledged = 0
        const bytes = () => sent.reduce((sum, { data = '' }) => sum + bytesIn(data), 0)
        const acknowledge = (to: number) => {
          acknowledged = Math.max(acknowledged, to)
          terminals.handle({ type: 'terminal.ack', terminal_id: 'a', bytes: acknowledged })
        }
        for (const step of steps) {
          if ('print' in step) {
            if (program.paused) continue
            const text = String(printed.length).padEnd(step.print, '.')
            printed += text
            program.print(Buffer.from(text))
          } else acknowledge(Math.floor(bytes() * step.acknowledge))
          if (bytes() - acknowledged > terminalLimits.output_window) return false
          if (program.paused !== bytes() < printed.length) return false
        }
        program.exit({ exit_code: 4 })
        while (sent.at(-1)?.type !== 'terminal.exit') acknowledge(bytes())
        const output = sent.filter(({ type }) => type === 'terminal.output')
        return (
          output.every(({ sequence }, index) => sequence === index) &&
          output.every(({ data = '' }) => bytesIn(data) <= terminalLimits.chunk) &&
          output.map(({ data = '' }) => Buffer.from(data, 'base64').toString()).join('') === printed
        )
      },
    ),
    { numRuns: 50 },
  )
})

t.test('input is acknowledged by its total', async (t) => {
  const { program, sent, terminals } = await stage()
  for (const text of ['ab', 'c'])
    terminals.handle({ type: 'terminal.input', terminal_id: 'a', data: data(text) })
  t.equal(program.written, 'abc')
  t.match(sent, [{ bytes: 2 }, { bytes: 3 }])
  terminals.handle({ type: 'terminal.input', terminal_id: 'unknown', data: data('x') })
  t.equal(sent.length, 2)
})

t.test('terminals end with the connection', async (t) => {
  const { program, sent, counts, terminals } = await stage()
  terminals.closeAll()
  t.ok(program.closed)
  program.print(Buffer.from('late'))
  program.exit({ exit_code: 0 })
  t.strictSame(sent, [])
  t.strictSame(counts, [1, 0])
})

t.test('a terminal that cannot be opened says why', async (t) => {
  const failing = await stage(() => Promise.reject(new Error('no pseudoterminals')))
  t.match(failing.sent, [{ type: 'terminal.exit', error: 'no pseudoterminals' }])
  t.strictSame(failing.counts, [1, 0])
  const sent: object[] = []
  const none = new Terminals(
    undefined,
    (frame) => void sent.push(frame),
    () => {},
  )
  none.handle({ type: 'terminal.open', terminal_id: 'a', columns: 80, rows: 24 })
  t.match(sent, [{ type: 'terminal.exit', error: /cannot open/ }])
})

t.test('a window counts what is on the way', async (t) => {
  const window = new ByteWindow(10)
  t.ok(window.take(10))
  t.equal(window.free, 0)
  window.acknowledge(11)
  t.equal(window.free, 0, 'more than was sent')
  window.acknowledge(4)
  window.acknowledge(2)
  t.equal(window.free, 4, 'an old total')
  t.notOk(window.take(5))
})
t.test('the size of base64 text', async () => {
  fc.assert(
    fc.property(
      fc.uint8Array(),
      (bytes) => bytesIn(Buffer.from(bytes).toString('base64')) === bytes.length,
    ),
  )
})
