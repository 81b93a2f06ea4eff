/** A start on a platform without a compiled HTTP server. */
import t from 'tap'
import { StartFault } from '../../../nodes/process/fault.ts'
import { requireHttpServer } from '../../../nodes/process/http-server.ts'

t.test('the HTTP server loads on this platform', async () => {
  await requireHttpServer()
})

t.test('a package that cannot be loaded is reported with a remedy', async (t) => {
  const reason = "libc.so.6: version `GLIBC_2.38' not found (required by uws_linux_x64_137.node)"
  const loading = requireHttpServer(() =>
    Promise.reject(new Error(`This version of uWS.js supports only …\n\nError: ${reason}`)),
  )
  const fault = await loading.then(
    () => undefined,
    (error: unknown) => error,
  )
  t.ok(fault instanceof StartFault)
  const { message } = fault as StartFault
  t.ok(message.includes(`Node ${process.versions.node} on `), 'the platform')
  t.ok(message.includes(`: Error: ${reason}\n`), 'the reason')
  t.match(message, /Use Node 20 .* glibc 2\.38/s, 'the remedy')
})
