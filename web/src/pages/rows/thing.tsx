interface Props {
  name: string;
  id: string | null;
  href?: string;
}

/** A name, and its id small behind it. */
export function Thing({ name, id, href }: Props) {
  const body = (
    <>
      <b className="cut">{name}</b>
      <span className="quiet small cut">{id}</span>
    </>
  );
  return href ? (
    <a className="pair more" href={href}>
      {body}
    </a>
  ) : (
    <span className="pair">{body}</span>
  );
}
