/** Copies a value, or a request as a `curl` command, a CLI command or TypeScript code. */

import { cliOf, curlOf, typescriptOf } from '../api/call-text.ts'
import type { CallInput, CallName } from '../api/client.ts'
import { IconButton } from './button.tsx'
import { showDone } from './notify.ts'
import { Menu } from './overlay.tsx'
import { designText as text } from './text.ts'

/** Copies a text to the clipboard, and reports it. */
export async function copy(value: string): Promise<void> {
  await navigator.clipboard.writeText(value)
  showDone(text.copied)
}

/** A button that copies a text to the clipboard. */
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

/** Shows a text in a monospaced font, with a button that copies it. */
export const Code = ({ children }: { readonly children: string }) => (
  <div class="code-frame">
    <pre>
      <code class="user-text">{children}</code>
    </pre>
    <CopyButton value={children} />
  </div>
)

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
