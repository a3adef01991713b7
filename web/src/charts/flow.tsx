import { type Link, layout, type Node, type Placed } from "./ribbons";

interface Props {
  nodes: readonly Node[];
  links: readonly Link[];
  heads: readonly string[];
  width: number;
}

/** Columns of boxes with ribbons between them. Height is the cost. The table beside it says the same. */
export function FlowChart({ nodes, links, heads, width }: Props) {
  const most = Math.max(...heads.map((_, column) => nodes.filter((each) => each.column === column).length));
  const height = Math.max(430, most * 52);
  const { places, ribbons: paths } = layout(nodes, links, width, height);
  return (
    <svg className="flow" viewBox={`0 0 ${width} ${height + 26}`} width={width} height={height + 26} aria-hidden="true">
      {heads.map((head, column) => (
        <text key={head} className="sub" x={places[nodes.findIndex((each) => each.column === column)]?.x ?? 0} y={12}>
          {head}
        </text>
      ))}
      <g transform="translate(0 24)">
        {links.map((each, n) => (
          <path key={`${each.source} ${each.target}`} className={`link ${each.tone}`} d={paths[n]}>
            <title>{each.title}</title>
          </path>
        ))}
        {nodes.map((each, n) => (
          <Box key={`${each.column} ${each.title}`} node={each} place={places[n]} />
        ))}
      </g>
    </svg>
  );
}

function Box({ node, place }: { node: Node; place: Placed | undefined }) {
  if (!place) return null;
  const { x, y, width, height } = place;
  const middle = y + height / 2;
  const two = height > 34;
  const letters = Math.floor((width - (two ? 20 : 92)) / 6.6);
  const body = (
    <g className={`node ${node.tone}`}>
      <title>{node.title}</title>
      <rect className="box" x={x} y={y} width={width} height={height} rx={4} />
      <rect className="edge" x={x} y={y} width={8} height={height} rx={3} />
      <text x={x + 16} y={two ? middle - 4 : middle} dy={two ? 0 : "0.35em"} fontWeight={550}>
        {node.name.length > letters ? `${node.name.slice(0, letters - 1)}…` : node.name}
      </text>
      {two ? (
        <text className="sub" x={x + 16} y={middle + 12}>
          {node.note}
        </text>
      ) : (
        <text className="sub" x={x + width - 8} y={middle} dy="0.35em" textAnchor="end">
          {node.note}
        </text>
      )}
    </g>
  );
  return node.href ? (
    <a href={node.href} tabindex={-1}>
      {body}
    </a>
  ) : (
    body
  );
}
