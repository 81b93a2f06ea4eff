/** Shows the states of a page without data (loading, empty and failed), and badges and notices. */
import type { ComponentChildren } from 'preact'
import { Component } from 'preact'
import { ApiError } from '../api/client.ts'
import type { Loaded } from '../api/query.ts'
import { Button } from './button.tsx'
import { Icon, type IconName } from './icons.tsx'
import { designText as text } from './text.ts'

/** Tone of a badge or notice. */
export type Tone = 'neutral' | 'good' | 'bad' | 'warn' | 'info' | 'accent'

/** A short text on a coloured background, such as a status. */
export const Badge = ({
  tone = 'neutral',
  children,
}: {
  readonly tone?: Tone
  readonly children: ComponentChildren
}) => <span class={`badge ${tone}`}>{children}</span>

/** A message inside a page. */
export const Notice = ({
  tone = 'info',
  children,
}: {
  readonly tone?: 'info' | 'good' | 'warn' | 'bad'
  readonly children: ComponentChildren
}) => (
  <div class={`notice ${tone}`} role={tone === 'bad' ? 'alert' : 'note'}>
    <Icon name={tone === 'bad' || tone === 'warn' ? 'warning' : 'info'} />
    <div class="grow">{children}</div>
  </div>
)

/** The content of a page without data: the title, and the reason or the next step (`children`). */
export const Empty = ({
  icon = 'info',
  title,
  children,
}: {
  readonly icon?: IconName
  readonly title: string
  readonly children?: ComponentChildren
}) => (
  <div class="empty">
    <Icon name={icon} />
    <h2>{title}</h2>
    {children}
  </div>
)

/** Grey placeholder bars for data that is being loaded. */
export const Skeleton = ({ lines = 4 }: { readonly lines?: number }) => (
  <div class="skeleton" role="status" aria-label={text.loading}>
    {Array.from({ length: lines }, (_, index) => (
      <i key={index} />
    ))}
  </div>
)

/** The failure of a request, with the message from the service. */
export const Failure = ({
  error,
  retry,
}: {
  readonly error: ApiError
  readonly retry?: () => void
}) => (
  <Notice tone="bad">
    <div class="user-text">{error.message}</div>
    {error.fields.map(({ field, message }) => (
      <div class="small user-text" key={field}>
        {text.about(field, message)}
      </div>
    ))}
    {error.permission !== undefined && (
      <div class="small user-text">{text.needs(error.permission)}</div>
    )}
    {error.requestId && <div class="small">{text.request(error.requestId)}</div>}
    {retry && <Button onClick={retry}>{text.retry}</Button>}
  </Notice>
)

/** Shows the data of a query, or its state. Old data stays visible during a reload. */
export function Show<T>({
  of: { data, error, loading },
  retry,
  lines,
  children,
}: {
  readonly of: Loaded<T>
  readonly retry?: () => void
  readonly lines?: number
  readonly children: (data: T) => ComponentChildren
}) {
  return (
    <>
      {error && <Failure error={error} {...(retry && { retry })} />}
      {data === undefined
        ? loading && <Skeleton {...(lines !== undefined && { lines })} />
        : children(data)}
    </>
  )
}

/** An error boundary that confines the effect of an exception to one part of the page. */
export class Boundary extends Component<
  { readonly children: ComponentChildren },
  { readonly error?: unknown }
> {
  static override getDerivedStateFromError = (error: unknown) => ({ error })
  override componentDidCatch(error: unknown): void {
    console.error(error)
  }
  override render() {
    const { error } = this.state
    if (error === undefined) return this.props.children
    return (
      <Notice tone="bad">
        <p>{text.pageFailed}</p>
        <p>{error instanceof ApiError ? error.message : text.pageFailedHint}</p>
        <Button onClick={() => location.reload()}>{text.reload}</Button>
      </Notice>
    )
  }
}
