//! The lattice of a small trace as a picture: DOT for Graphviz, or SVG by a layout of our own.
//!
//! Levels run from top to bottom. The observed run is bold, the violating path red; what no complete run has is grey.

use super::whole::{Edge, Whole};
use portent_trace::{EventId, Op, Trace};
use std::fmt::Write;

/// Nodes of a picture, at most: more cannot be read.
pub const MOST_NODES: usize = 400;

/// What to draw.
pub struct Drawing<'a> {
    trace: &'a Trace,
    whole: &'a Whole,
    /// Edges of the observed run and of the violating path.
    observed: Vec<bool>,
    violating: Vec<bool>,
    title: String,
}

impl<'a> Drawing<'a> {
    /// A picture of a lattice with a violating path, if there is one.
    pub fn new(trace: &'a Trace, whole: &'a Whole, title: &str, violating: Option<&[EventId]>) -> Self {
        let observed: Vec<EventId> = trace.events().map(|event| event.id).collect();
        let path = |events: &[EventId]| {
            let mut marked = vec![false; whole.edges.len()];
            let mut positions = vec![0u32; trace.threads()];
            let mut at = whole.find(&positions);
            for &event in events {
                positions[trace.thread(event).index()] += 1;
                let next = whole.find(&positions);
                let edge = whole.edges.iter().position(|edge| Some(edge.from) == at && Some(edge.to) == next);
                edge.into_iter().for_each(|edge| marked[edge] = true);
                at = next;
            }
            marked
        };
        let violating = violating.map_or_else(|| vec![false; whole.edges.len()], path);
        Drawing { trace, whole, observed: path(&observed), violating, title: title.to_owned() }
    }

    fn event(&self, edge: &Edge) -> String {
        let (trace, event) = (self.trace, edge.event);
        let object = match trace.op(event) {
            Op::Read(x, _) | Op::Write(x, _) | Op::Update(x, _) => trace.variable_name(x).into_owned(),
            Op::Acquire(l, _) | Op::Release(l, _) | Op::Busy(l, _) => trace.names().lock(l).into_owned(),
            Op::Sleep(c) | Op::Notify(c, _) | Op::Wake(c) => trace.names().condition(c).into_owned(),
            _ => String::new(),
        };
        let value = match trace.value(event) {
            _ if edge.is_changed => " (another write)".to_owned(),
            value => value.map_or_else(String::new, |value| format!("={value}")),
        };
        format!("{}: {} {object}{value}", trace.names().thread(trace.thread(event)), trace.op(event).name())
            .trim_end()
            .to_owned()
    }
    fn positions(&self, node: usize) -> String {
        let all: Vec<String> = self.whole.nodes[node].positions.iter().map(u32::to_string).collect();
        format!("({})", all.join(","))
    }
    /// Whether a node is on the violating path or the observed run.
    fn is_on(&self, node: usize, path: &[bool]) -> bool {
        let mut edges = self.whole.edges.iter().zip(path);
        edges.any(|(edge, &on)| on && (edge.from == node || edge.to == node))
    }

    /// As DOT.
    pub fn dot(&self) -> String {
        let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
        let mut text =
            format!("digraph lattice {{\n  label={};\n  node [shape=ellipse, fontsize=11];\n", quoted(&self.title));
        for (at, node) in self.whole.nodes.iter().enumerate() {
            let red = self.is_on(at, &self.violating);
            let colour = if red {
                "red"
            } else if node.is_cut {
                "black"
            } else {
                "gray60"
            };
            let pen = if self.is_on(at, &self.observed) { 2.5 } else { 1.0 };
            let label = quoted(&self.positions(at));
            let _ = writeln!(text, "  n{at} [label={label}, color={colour}, penwidth={pen}];");
        }
        for (at, edge) in self.whole.edges.iter().enumerate() {
            let colour = if self.violating[at] {
                "red"
            } else if edge.is_cut {
                "black"
            } else {
                "gray60"
            };
            let pen = if self.observed[at] { 2.5 } else { 1.0 };
            let label = quoted(&self.event(edge));
            let _ = writeln!(
                text,
                "  n{} -> n{} [label={label}, color={colour}, fontcolor={colour}, penwidth={pen}, fontsize=10];",
                edge.from, edge.to
            );
        }
        text + "}\n"
    }

    /// As SVG: nodes of a level beside each other, sorted by where their predecessors are.
    pub fn svg(&self) -> String {
        const ROW: f64 = 104.0;
        let label_width = self.whole.edges.iter().map(|edge| self.event(edge).chars().count()).max().unwrap_or(8);
        let node_width = 16.0 + 7.0 * self.whole.nodes.first().map_or(3, |n| self_len(&n.positions)) as f64;
        let column = (label_width as f64 * 8.0 + 20.0).max(node_width + 24.0);
        let levels = self.whole.nodes.iter().map(|node| node.level).max().unwrap_or(0) + 1;
        let mut rows: Vec<Vec<usize>> = vec![Vec::new(); levels];
        (0..self.whole.nodes.len()).for_each(|at| rows[self.whole.nodes[at].level].push(at));
        let mut x = vec![0.0f64; self.whole.nodes.len()];
        for row in &mut rows {
            let wish = |node: usize, x: &[f64]| {
                let from: Vec<f64> = self.whole.edges.iter().filter(|e| e.to == node).map(|e| x[e.from]).collect();
                let middle = from.iter().sum::<f64>() / from.len().max(1) as f64;
                // Threads of lower number run to the left.
                let lean: f64 =
                    self.whole.nodes[node].positions.iter().enumerate().map(|(t, &p)| -(t as f64) * f64::from(p)).sum();
                (middle, -lean)
            };
            let wishes: Vec<(f64, f64)> = row.iter().map(|&node| wish(node, &x)).collect();
            let mut order: Vec<usize> = (0..row.len()).collect();
            order.sort_by(|&a, &b| wishes[a].partial_cmp(&wishes[b]).unwrap_or(std::cmp::Ordering::Equal));
            *row = order.into_iter().map(|at| row[at]).collect();
            let middle = (row.len() as f64 - 1.0) / 2.0;
            for (at, &node) in row.iter().enumerate() {
                x[node] = (at as f64 - middle) * column;
            }
        }
        let half = rows.iter().map(Vec::len).max().unwrap_or(1) as f64 * column / 2.0 + 20.0;
        let half = half.max(self.title.chars().count() as f64 * 3.8 + 20.0).max(230.0);
        let y = |node: usize| 70.0 + self.whole.nodes[node].level as f64 * ROW;
        let height = 110.0 + levels as f64 * ROW;
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w:.0}\" height=\"{height:.0}\" viewBox=\"{left:.0} 0 {w:.0} {height:.0}\" font-family=\"sans-serif\">\n\
             <rect x=\"{left:.0}\" width=\"{w:.0}\" height=\"{height:.0}\" fill=\"#fff\"/>\n\
             <text x=\"0\" y=\"26\" text-anchor=\"middle\" font-size=\"14\">{}</text>\n",
            escaped(&self.title),
            w = 2.0 * half,
            left = -half,
        );
        for (at, edge) in self.whole.edges.iter().enumerate() {
            let (x1, y1, x2, y2) = (x[edge.from], y(edge.from) + 12.0, x[edge.to], y(edge.to) - 12.0);
            let colour = if self.violating[at] {
                "#c62828"
            } else if edge.is_cut {
                "#444"
            } else {
                "#bbb"
            };
            let pen = if self.observed[at] { 3.5 } else { 1.2 };
            let dash = if edge.is_cut || self.violating[at] { "" } else { " stroke-dasharray=\"4 3\"" };
            let _ = writeln!(
                text,
                "<path d=\"M{x1:.1} {y1:.1} L{x2:.1} {y2:.1}\" stroke=\"{colour}\" stroke-width=\"{pen}\" fill=\"none\"{dash}/>"
            );
            // Edges that leave to the left, straight down and to the right have their labels at different heights.
            let along = if x2 < x1 - 1.0 {
                0.28
            } else if x2 > x1 + 1.0 {
                0.72
            } else {
                0.5
            };
            let (lx, ly) = (x1 + (x2 - x1) * along, y1 + (y2 - y1) * along);
            let weight = if self.observed[at] { " font-weight=\"bold\"" } else { "" };
            let _ = writeln!(
                text,
                "<text x=\"{lx:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"11\" fill=\"{colour}\"{weight} stroke=\"#fff\" stroke-width=\"3\" paint-order=\"stroke\">{}</text>",
                ly + 4.0,
                escaped(&self.event(edge))
            );
        }
        for (at, node) in self.whole.nodes.iter().enumerate() {
            let red = self.is_on(at, &self.violating);
            let colour = if red {
                "#c62828"
            } else if node.is_cut {
                "#444"
            } else {
                "#bbb"
            };
            let pen = if self.is_on(at, &self.observed) { 3.0 } else { 1.2 };
            let _ = writeln!(
                text,
                "<ellipse cx=\"{cx:.1}\" cy=\"{cy:.1}\" rx=\"{rx:.1}\" ry=\"12\" fill=\"#fff\" stroke=\"{colour}\" stroke-width=\"{pen}\"/>\
                 <text x=\"{cx:.1}\" y=\"{ty:.1}\" text-anchor=\"middle\" font-size=\"12\" fill=\"{colour}\">{}</text>",
                escaped(&self.positions(at)),
                cx = x[at],
                cy = y(at),
                rx = node_width / 2.0,
                ty = y(at) + 4.0,
            );
        }
        let _ = writeln!(
            text,
            "<text x=\"0\" y=\"{:.0}\" text-anchor=\"middle\" font-size=\"11\" fill=\"#666\">bold: the observed run · red: breaks the property · dashed: no complete run</text>",
            height - 14.0
        );
        text + "</svg>\n"
    }
}

/// How long the numbers of a node are.
fn self_len(positions: &[u32]) -> usize {
    positions.iter().map(|p| p.to_string().len() + 1).sum::<usize>() + 1
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
