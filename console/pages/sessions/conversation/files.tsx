/** The files of messages: image previews and download links. */
import { describeFile } from '../../../../client/chat/files/describe.ts'
import type { ArtifactReference } from '../../../../protocol/artifacts/reference.ts'
import type { Block } from '../../../../protocol/sessions/turns/blocks.ts'
import { requestOf } from '../../../api/client.ts'
import { Icon } from '../../../design/icons.tsx'
import { formatBytes } from '../../../text/format.ts'
import { conversationText as text } from './text.ts'

/** The project and the session from which files are read. */
export interface SessionAddress {
  readonly project: string
  readonly session_id: string
}

/** Shows an image or document of a message. */
export function FileBlock({
  block,
  address,
}: {
  readonly block: Extract<Block, { readonly type: 'image' | 'document' }>
  readonly address: SessionAddress
}) {
  const { title, size, source, isImage } = describeFile(block)
  if (source.kind === 'none') return <Name title={title} size={size} />
  const href =
    source.kind === 'artifact'
      ? requestOf('session.attachment', { ...address, artifact_id: source.id }).path
      : source.url
  return (
    <figure class="talk-file">
      {isImage && source.kind !== 'link' && (
        <img class="talk-preview" src={href} alt={title} loading="lazy" />
      )}
      {source.kind === 'link' ? (
        <a href={href} target="_blank" rel="noopener noreferrer">
          <Name title={title} size={size} />
        </a>
      ) : (
        <a href={href} download={title} aria-label={text.download(title)}>
          <Icon name="download" />
          <Name title={title} size={size} />
        </a>
      )}
    </figure>
  )
}

/** Shows the artifacts that the result of a tool refers to. */
export const Artifacts = ({
  references,
  project,
}: {
  readonly references: readonly ArtifactReference[]
  readonly project: string
}) => (
  <ul class="talk-files">
    {references.map(({ id, name, size }) => (
      <li key={id} class="talk-file">
        <a
          href={requestOf('artifact.content', { project, artifact_id: id }).path}
          download={name?.split('/').at(-1) ?? id}
          aria-label={text.download(name ?? id)}
        >
          <Icon name="download" />
          <Name title={name ?? id} size={formatBytes(size)} />
        </a>
        <a class="small" href={`/p/${encodeURIComponent(project)}/artifacts/${id}`}>
          {text.openArtifact}
        </a>
      </li>
    ))}
  </ul>
)

const Name = ({ title, size }: { readonly title: string; readonly size: string }) => (
  <span>
    <span class="user-text">{title}</span>
    {size !== '' && <span class="soft small"> {size}</span>}
  </span>
)
