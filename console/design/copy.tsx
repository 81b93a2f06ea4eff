/** Copying: a value, or a request as `curl`, command line and TypeScript. */
import { type CallInput, type CallName, requestOf } from '../api/client.ts'
import { IconButton } from './button.tsx'
import { Menu } from './overlay.tsx'
import { designText as text } from './text.ts'
import { showDone } from './toast.tsx'

async function copy(value: string): Promise<void> {
  await navigator.clipboard.writeText(value)
  showDone(text.copied)
}

/** A button that copies a text. */
export const CopyButton = ({
  value,
  label = text.copy,
}: {
  readonly value: string | (() => string)
  readonly label?: string
}) => (
  <IconButton
    icon="copy"
    label={label}
    onClick={() => copy(typeof value === 'string' ? value : value())}
  />
)

/** Shows a text in a fixed width, with a button that copies it. */
export const Code = ({ children }: { readonly children: string }) => (
  <div class="code-frame">
    <pre>
      <code class="user-text">{children}</code>
    </pre>
    <CopyButton value={children} />
  </div>
)

/** Quotes a text for a POSIX shell. */
export const shellQuote = (value: string): string =>
  /^[\w@%+=:,./-]+$/.test(value) ? value : `'${value.replaceAll("'", `'\\''`)}'`

/** Returns a call as a `curl` command. The key is read from the environment. */
export function curlOf(name: string, input: Readonly<Record<string, unknown>>): string {
  const { method, path, body } = requestOf(name, input)
  return [
    `curl${method === 'GET' ? '' : ` -X ${method}`} ${shellQuote(`${location.origin}${path}`)}`,
    `-H "Authorization: Bearer $BATON_KEY"`,
    ...(body === undefined
      ? []
      : [`-H 'Content-Type: application/json'`, `-d ${shellQuote(JSON.stringify(body))}`]),
  ].join(' \\\n  ')
}
/** Returns a call as a command of the command line. */
export function cliOf(name: string, input: Readonly<Record<string, unknown>>): string {
  const options = Object.entries(input).flatMap(([member, value]) =>
    value === undefined
      ? []
      : [
          `--${member.replaceAll('_', '-')} ${shellQuote(typeof value === 'string' ? value : JSON.stringify(value))}`,
        ],
  )
  return ['npm run baton -- call', name, ...options].join(' ')
}
/** The module of the client library. */
const CLIENT = 'baton/client'
/** Returns a call as a program in TypeScript. */
export function typescriptOf(name: string, input: Readonly<Record<string, unknown>>): string {
  const { project, ...rest } = input
  return [
    `import { client } from ${JSON.stringify(CLIENT)}`,
    '',
    `const baton = client({ url: ${JSON.stringify(location.origin)}, key: process.env.BATON_KEY` +
      `${project === undefined ? '' : `, project: ${JSON.stringify(project)}`} })`,
    `const answer = await baton.${name}(${JSON.stringify(rest, undefined, 2)})`,
  ].join('\n')
}

/** A menu that copies a call in one of three forms. */
export function CopyCall<N extends CallName>({
  name,
  input,
}: {
  readonly name: N
  readonly input: CallInput<N>
}) {
  const values = input as Record<string, unknown>
  return (
    <Menu
      label={text.copyAs}
      icon="copy"
      items={[
        { label: text.curl, onSelect: () => copy(curlOf(name, values)) },
        { label: text.cli, onSelect: () => copy(cliOf(name, values)) },
        { label: text.typescript, onSelect: () => copy(typescriptOf(name, values)) },
      ]}
    />
  )
}
