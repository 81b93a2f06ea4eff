/** The writes of a worker socket: frames of one callback of the event loop are sent in one write. */
import t from 'tap'
import { SocketPipe } from '../../../gateway/workers/mount.ts'

t.test('a socket', async (t) => {
  const scripted = () => {
    const at = { left: 0, writes: [] as string[][], closed: [] as unknown[], buffered: 0 }
    let corked: string[] | undefined
    const socket = {
      send: (frame: string | Buffer) => {
        const text = frame.toString()
        if (at.left > 16 * 1_048_576) return 2
        if (corked) corked.push(text)
        else at.writes.push([text])
        return 1
      },
      cork: (run: () => void) => {
        corked = []
        run()
        at.writes.push(corked)
        corked = undefined
      },
      getBufferedAmount: () => at.left,
      ping() {},
      end: (code: number) => at.closed.push(code),
      close: () => at.closed.push('dropped'),
    }
    const pipe = new SocketPipe(
      socket as unknown as ConstructorParameters<typeof SocketPipe>[0],
      () => at.buffered++,
    )
    return { at, pipe }
  }
  const turn = () => new Promise<void>((done) => setImmediate(done))

  t.test('sends the frames of one callback in one write, in order', async (t) => {
    const { at, pipe } = scripted()
    // As when several messages for workers arrive together.
    const handled = [1, 2].map(() => Promise.resolve())
    void handled[0]?.then(() => t.ok(pipe.send('a') && pipe.send('b')))
    void handled[1]?.then(() => t.ok(pipe.send('c')))
    t.same(at.writes, [])
    await turn()
    t.same(at.writes, [['a', 'b', 'c']])
    pipe.send('d')
    await turn()
    t.same(at.writes, [['a', 'b', 'c'], ['d']])
    t.equal(at.buffered, 0)
  })
  t.test('does not collect more than 16 KiB', async (t) => {
    const { at, pipe } = scripted()
    const [large, small] = ['x'.repeat(16_000), 'y'.repeat(384)]
    for (const text of [large, small, 'z']) pipe.send(text)
    t.same(at.writes, [[large, small]])
    await turn()
    t.same(at.writes, [[large, small], ['z']])
  })
  t.test('sends waiting frames before it closes, and none after it was closed', async (t) => {
    const { at, pipe } = scripted()
    pipe.send('last')
    pipe.close(4410, 'superseded')
    t.same([at.writes, at.closed], [[['last']], [4410]])
    const lost = scripted()
    lost.pipe.send('lost')
    lost.pipe.ended()
    await turn()
    t.same(lost.at.writes, [])
  })
  t.test('accepts no frame that it could not buffer, and tells when it buffers', async (t) => {
    const { at, pipe } = scripted()
    at.left = 16 * 1_048_576 - 30
    t.ok(pipe.send('x'.repeat(10)), 'the last frame may exceed the limit')
    t.ok(pipe.send('y'))
    t.notOk(pipe.send('z'), 'beyond the limit with the frames that wait')
    await turn()
    t.same(at.writes, [['x'.repeat(10), 'y']])
    t.equal(at.buffered, 1)
    at.left = 16 * 1_048_576 + 1
    t.notOk(pipe.send('z'))
  })
})
