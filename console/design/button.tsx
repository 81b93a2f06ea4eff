/** Buttons, and links that look like buttons. */
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { Icon, type IconName } from './icons.tsx'
import { showError } from './notify.ts'

interface Look {
  readonly icon?: IconName
  /** `primary`: the main action, at most one per page or dialog. */
  readonly kind?: 'primary' | 'quiet'
  readonly danger?: boolean
}
interface ButtonProps extends Look {
  readonly children: ComponentChildren
  /** Clicks are ignored while a returned promise is pending. A rejection is shown as an error. */
  readonly onClick?: (event: MouseEvent) => unknown
  readonly submit?: boolean
  readonly disabled?: boolean
  /**
   * Whether the operation of the button is in progress. Unlike a disabled button, a busy button
   * keeps the focus.
   */
  readonly busy?: boolean
  /** The tooltip: the reason why the button is disabled, or its effect. */
  readonly title?: string
  readonly shortcut?: string
  /** Whether a toggle button, or a button that selects a view, is pressed. */
  readonly pressed?: boolean
}

const classes = (kind: string | undefined, danger: boolean | undefined, icon = false): string =>
  ['button', kind, danger && 'danger', icon && 'icon'].filter(Boolean).join(' ')

/**
 * Wraps the click handler of a control. Returns the new handler, and whether the control is busy.
 */
function usePending(onClick: ButtonProps['onClick'], busy = false) {
  const [isRunning, setPending] = useState(false)
  const pending = isRunning || busy
  const run = async (event: MouseEvent): Promise<void> => {
    if (pending) return event.preventDefault()
    const result = onClick?.(event)
    if (!(result instanceof Promise)) return
    setPending(true)
    try {
      await result
    } catch (error) {
      showError(error)
    } finally {
      setPending(false)
    }
  }
  return { pending, run: (event: MouseEvent) => void run(event) }
}

/** A button that shows a text. */
export function Button(props: ButtonProps) {
  const { icon, kind, danger, children, onClick, submit, disabled, title, shortcut, pressed } =
    props
  const { pending, run } = usePending(onClick, props.busy)
  return (
    <button
      type={submit ? 'submit' : 'button'}
      class={classes(kind, danger)}
      disabled={disabled}
      aria-disabled={pending || undefined}
      aria-busy={pending}
      title={title}
      aria-keyshortcuts={shortcut}
      aria-pressed={pressed}
      onClick={run}
    >
      {icon && <Icon name={icon} />}
      {/* The text, such as the name of a record, may be wider than the page, so it is clipped. */}
      {typeof children === 'string' ? <span class="clip">{children}</span> : children}
    </button>
  )
}

/** A button that shows only an icon. */
export function IconButton(
  props: Omit<ButtonProps, 'children' | 'title'> & {
    readonly icon: IconName
    readonly label: string
  },
) {
  const { icon, kind = 'quiet', danger, label, onClick, disabled, shortcut, pressed } = props
  const { pending, run } = usePending(onClick, props.busy)
  return (
    <button
      type="button"
      class={classes(kind, danger, true)}
      disabled={disabled}
      aria-disabled={pending || undefined}
      aria-label={label}
      title={label}
      aria-keyshortcuts={shortcut}
      aria-pressed={pressed}
      onClick={run}
    >
      <Icon name={icon} />
    </button>
  )
}

/** A link that looks like a button. */
export const LinkButton = ({
  href,
  icon,
  kind,
  danger,
  children,
  download,
}: Look & {
  readonly href: string
  readonly children: ComponentChildren
  readonly download?: string
}) => (
  <a class={classes(kind, danger)} href={href} download={download}>
    {icon && <Icon name={icon} />}
    {children}
  </a>
)
