/** The blocks of a message: text, thinking, tool calls with their results, files, context. */
import { useState } from 'preact/hooks'
import { resultOf, toolStatus } from '../../../../client/transcript/tools.ts'
import { artifactReferences } from '../../../../protocol/artifacts/reference.ts'
import type {
  Block,
  ToolResultBlock,
  ToolUseBlock,
} from '../../../../protocol/sessions/turns/blocks.ts'
import { Badge, type Tone } from '../../../design/states.tsx'
import { Tree } from '../../../design/tree.tsx'
import { Markdown } from '../../../markdown/markdown.tsx'
import { Artifacts, FileBlock, type SessionAddress } from './files.tsx'
import { conversationText as text } from './text.ts'

/** A collapsible part whose content is rendered only while it is open. */
function Folded({
  label,
  open = false,
  children,
}: {
  readonly label: string
  readonly open?: boolean
  readonly children: () => preact.ComponentChildren
}) {
  const [isOpen, setOpen] = useState(open)
  return (
    <details
      class="folded"
      open={isOpen}
      onToggle={({ currentTarget }) => setOpen(currentTarget.open)}
    >
      <summary>{label}</summary>
      {isOpen && <div class="folded-body">{children()}</div>}
    </details>
  )
}

const tones: Readonly<Record<string, Tone>> = {
  running: 'info',
  waiting: 'warn',
  ok: 'good',
  error: 'bad',
}
const labels: Readonly<Record<string, string>> = {
  pending: text.pending,
  running: text.running,
  waiting: text.waiting,
  ok: text.ok,
  error: text.failed,
  cancelled: text.cancelled,
}

function Tool({
  block,
  result,
  project,
}: {
  readonly block: ToolUseBlock
  readonly result: ToolResultBlock | undefined
  readonly project: string
}) {
  const status = toolStatus(block, result)
  const name = block.resolved_action?.name ?? block.name
  const input = block.resolved_action?.input ?? block.input ?? {}
  const display = block.progress?.['display']
  const value = result && resultOf(result)
  const references = result ? artifactReferences(value) : []
  return (
    <div class="talk-tool" role="group" aria-label={text.toolNamed(name)}>
      <div class="row">
        <code class="user-text">{name}</code>
        <Badge tone={tones[status] ?? 'neutral'}>{labels[status] ?? status}</Badge>
      </div>
      {typeof display === 'string' && display !== '' && (
        <p class="soft small user-text">{display}</p>
      )}
      <Folded label={text.input}>{() => <Tree value={input} open={2} />}</Folded>
      {result && (
        <Folded label={result.is_error ? text.error : text.result} open={result.is_error === true}>
          {() => <Tree value={value} open={2} />}
        </Folded>
      )}
      {references.length > 0 && <Artifacts references={references} project={project} />}
    </div>
  )
}

/** The name of the reminder that contains a person's message to a running turn. */
const DIRECTION = 'user-direction'

/** Shows a block. `live`: the block is being generated. */
export function BlockView({
  block,
  result,
  live,
  address,
}: {
  readonly block: Block
  readonly result: ToolResultBlock | undefined
  readonly live: boolean
  readonly address: SessionAddress
}) {
  switch (block.type) {
    case 'text':
      return <Markdown text={block.text ?? ''} />
    case 'thinking':
      return (
        <Folded label={text.thinking} open={live}>
          {() => <Markdown text={block.thinking ?? ''} />}
        </Folded>
      )
    case 'tool_use':
      return <Tool block={block} result={result} project={address.project} />
    case 'image':
    case 'document':
      return <FileBlock block={block} address={address} />
    case 'reminder':
      return block.name === DIRECTION ? (
        <Markdown text={block.content} />
      ) : (
        <Folded label={text.reminder(block.name)}>
          {() => <p class="user-text talk-pre">{block.content}</p>}
        </Folded>
      )
    case 'tool_result':
      return null
    default:
      // A block that was announced but has not been received yet has no type.
      return (block as { readonly type?: string }).type === undefined ? null : (
        <Folded label={text.unknownBlock((block as { readonly type: string }).type)}>
          {() => <Tree value={block} />}
        </Folded>
      )
  }
}
