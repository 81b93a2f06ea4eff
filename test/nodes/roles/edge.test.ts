/** Loading the gateway on a platform without a compiled HTTP server. */
import t from 'tap'
import { StartFault } from '../../../nodes/process/fault.ts'
import { loadGateway } from '../../../nodes/roles/edge.ts'

const errorOf = (error: Error) =>
  loadGateway(() => Promise.reject(error)).then(
    () => undefined,
    (thrown: unknown) => thrown,
  )

t.test('an HTTP server that cannot be loaded is reported with a remedy', async (t) => {
  const reason = "libc.so.6: version `GLIBC_2.38' not found (required by uws_linux_x64_137.node)"
  const fault = await errorOf(
    new Error(`This version of uWS.js supports only Node.js versions …\n\nError: ${reason}`),
  )
  t.ok(fault instanceof StartFault)
  const { message } = fault as StartFault
  t.ok(message.includes(`Node ${process.versions.node} on `), 'the platform')
  t.ok(message.includes(`: Error: ${reason}\n`), 'the reason')
  t.match(message, /Use Node 20 .* glibc 2\.38/s, 'the remedy')
})

t.test('other errors of the gateway are not changed', async (t) => {
  const error = new Error('x is not a function')
  t.equal(await errorOf(error), error)
})
