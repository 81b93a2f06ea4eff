/**
 * Runs the command line as a server for a test. All commands of shell scripts run in this one
 * process, because loading the program takes most of the time of a command. The server listens on a
 * loopback port and writes the port to its standard output.
 *
 * A request consists of the number of arguments, followed by the arguments, each terminated by a
 * NUL. The answer is the exit code, a line feed and the standard output. Notes go to the standard
 * error of this process.
 */
import { createServer, type Socket } from 'node:net'
import { Command, CommanderError } from 'commander'
import { addClientCommands } from '../../client/cli/commands.ts'
import { explain } from '../../client/cli/explain.ts'

async function run(words: readonly string[], print: (text: string) => void): Promise<number> {
  const note = (line: string) => void process.stderr.write(`${line}\n`)
  let code = 0
  const program = new Command('baton')
  addClientCommands(program, process.env, {
    env: process.env,
    print: (line) => print(`${line}\n`),
    note,
    guarded:
      (action) =>
      async (...given) => {
        try {
          await action(...given)
        } catch (error) {
          code = 1
          note(explain(error, process.env) ?? String((error as Error).stack))
        }
      },
  })
  for (const command of withChildren(program))
    command.exitOverride().configureOutput({ writeOut: print, writeErr: note })
  try {
    await program.parseAsync([...words], { from: 'user' })
    // `follow` reports a failed run through the process exit code.
    if (process.exitCode) code = Number(process.exitCode)
    process.exitCode = 0
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    code = error.exitCode
  }
  return code
}
const withChildren = (command: Command): Command[] => [
  command,
  ...command.commands.flatMap(withChildren),
]

const server = createServer((socket: Socket) => {
  let received = ''
  socket.on('error', () => socket.destroy())
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    received += chunk
    const [count = '', ...words] = received.split('\0')
    if (!/^\d+$/.test(count) || words.length <= Number(count)) return
    socket.removeAllListeners('data')
    let output = ''
    void run(words.slice(0, Number(count)), (text) => {
      output += text
    }).then((code) => socket.end(`${code}\n${output}`))
  })
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  process.stdout.write(`${typeof address === 'object' ? address?.port : ''}\n`)
})
